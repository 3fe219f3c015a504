from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.runs import replaced_token_pretraining


def test_detection_is_scored_by_what_was_sampled():
    outputs = {
        "sampled": np.array([[7, 8], [9, 0]]),
        "replaced": np.array([[-1.0, 2.0, -3.0, 0.5], [1.0, -2.0, 5.0, 5.0]])[..., None],
    }
    x = {
        "token_ids": np.zeros((2, 4), int),
        "mask_positions": np.array([[1, 2], [1, 0]]),
        "padding_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    y = {"masked_lm": np.array([[6, 8], [5, 0]])}
    weights = {"masked_lm": np.array([[1.0, 1.0], [1.0, 0.0]])}
    task = SimpleNamespace(predict_on_batch=lambda x: outputs)
    scores = replaced_token_pretraining.evaluate_detection(task, [(x, y, weights)])
    # real tokens: scores -1 2 -3 0.5 | 1 -2, of which 2 and -2 are replaced
    losses = [np.log1p(np.exp(s)) for s in (-1, -2, -3, 0.5, 1, 2)]
    assert scores["replaced_loss"] == pytest.approx(np.mean(losses))
    assert scores["replaced_share"] == pytest.approx(2 / 6)
    assert scores["replaced_recall"] == 0.5
    assert scores["replaced_precision"] == pytest.approx(1 / 3)
