"""Runs that answer together are in `tests.recipes.test_finetune`."""

import numpy as np

from keras_bert3.benchmarks.hub import find
from keras_bert3.runs.fine_tuning_ensemble import _shares, check


def test_scores_become_probabilities_and_numbers_stay():
    scores = np.array([[1000.0, 1000.0 + np.log(3)]], "float32")
    np.testing.assert_allclose(_shares(find("mrpc"), scores), [[0.25, 0.75]], rtol=1e-4)
    np.testing.assert_array_equal(_shares(find("stsb"), scores[:, :1]), [[1000.0]])


def test_no_ensemble_asks_for_nothing():
    check(find("squad2"), 0, 1)
    check(find("swag"), 2, 2)
