import numpy as np
import pytest

from keras_bert3.tasks.labels import check_names, class_ids, scores

NAMES = ("contradiction", "entailment", "neutral")


def test_G1_labels_are_mapped_by_their_names():
    data = ["entailment", "neutral", "contradiction", "entailment"]
    assert class_ids(data, 3, NAMES).tolist() == [1, 2, 0, 1]
    assert class_ids(np.array(data, object), 3, NAMES).tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize(
    "labels", [[2, 0, 1], np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1], "u1")]
)
def test_numbers_are_kept(labels):
    ids = class_ids(labels, 3, NAMES)
    assert ids.dtype == np.int32 and ids.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        (["neutral", "maybe"], NAMES, r"among \['contradiction', .* Received: 'maybe'"),
        (["neutral"], None, "have no names .* Received: 'neutral'"),
        ([0, 3], NAMES, r"range \[0, 3\)\. Received: 3 at position 1$"),
        ([0, 0, -1], NAMES, "Received: -1 at position 2: no labels"),
        ([0.5], NAMES, "whole numbers. Received: .*0.5"),
        ([None], NAMES, "Received: None, of type object"),
    ],
)
def test_G1_G2_what_is_no_class_is_refused(labels, names, message):
    with pytest.raises(ValueError, match=message):
        class_ids(labels, 3, names)


def test_class_probabilities_are_left_to_the_loss_that_takes_them():
    soft = np.array([[0.5, 0.5]])
    assert class_ids(soft, 2) is soft


def test_scores_are_finite_numbers():
    assert scores([1, 2.5]).dtype == np.float32
    with pytest.raises(ValueError, match=r"finite numbers.*nan at \(1,\)"):
        scores([1.0, np.nan])
    with pytest.raises(ValueError, match="Expected numbers.*'high'"):
        scores(["high"])


def test_names_and_counts_go_together():
    assert check_names(NAMES, None) == (list(NAMES), 3)
    assert check_names(None, 2) == (None, 2)
    for labels, count, message in (
        (None, None, "Received: neither"),
        (NAMES, 2, "num_classes=2 different names"),
        (("a", "a"), None, "num_classes=2 different|different names"),
        (None, 0, "num_classes=0"),
    ):
        with pytest.raises(ValueError, match=message):
            check_names(labels, count)
