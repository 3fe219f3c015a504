import importlib

import numpy as np
import pytest

from keras_bert3.metrics import glue

pytest.importorskip("sklearn")
pytest.importorskip("scipy")
GOLD = np.random.default_rng(0).integers(0, 2, 60)
PREDICTED = np.where(np.random.default_rng(1).random(60) < 0.7, GOLD, 1 - GOLD)


def test_accuracy_f1_and_matthews_are_those_of_their_formulas():
    tp, tn = ((GOLD == v) & (PREDICTED == v) for v in (1, 0))
    fp, fn = ((GOLD == v) & (PREDICTED != v) for v in (0, 1))
    tp, tn, fp, fn = (int(part.sum()) for part in (tp, tn, fp, fn))
    scores = glue.accuracy_and_f1(GOLD, PREDICTED)
    np.testing.assert_allclose(scores["accuracy"], (tp + tn) / 60)
    np.testing.assert_allclose(scores["f1"], 2 * tp / (2 * tp + fp + fn))
    matthews = (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    np.testing.assert_allclose(glue.matthews(GOLD, PREDICTED)["matthews"], matthews)


def test_correlations_are_those_of_their_formulas():
    gold = np.random.default_rng(2).normal(size=30)
    predicted = gold**3 + np.random.default_rng(3).normal(size=30)
    ranks = [np.argsort(np.argsort(values)) for values in (gold, predicted)]
    scores = glue.pearson_and_spearman(gold, predicted)
    np.testing.assert_allclose(scores["pearson"], np.corrcoef(gold, predicted)[0, 1])
    np.testing.assert_allclose(scores["spearman"], np.corrcoef(*ranks)[0, 1])
    np.testing.assert_allclose(scores["mean"], (scores["pearson"] + scores["spearman"]) / 2)


def test_predictions_all_alike_score_nothing():
    assert glue.matthews([0, 1], [1, 1]) == {"matthews": 0.0}
    assert glue.pearson_and_spearman([1.0, 2.0], [3.0, 3.0])["mean"] == 0.0
    assert glue.accuracy_and_f1([1, 1], [0, 0]) == {"accuracy": 0.0, "f1": 0.0}


@pytest.mark.parametrize("name", glue.METRICS)
def test_unequal_lengths_are_refused(name):
    with pytest.raises(ValueError):
        glue.METRICS[name]([0, 1], [1])
    with pytest.raises(ValueError):
        glue.METRICS[name]([], [])


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ImportError, match=r"need sklearn; install keras-bert3\[metrics\]"):
        glue.accuracy([0], [0])
