import pytest

from keras_bert3.tasks.trained_classes import trained_classes

STORED = {"num_classes": 2, "labels": ["no", "yes"], "dropout": 0.1}


def test_the_same_classes_and_other_arguments_are_taken():
    overrides = {"labels": ("no", "yes"), "dropout": 0.0}
    assert trained_classes("head", STORED, overrides, ()) == {**STORED, **overrides}
    assert trained_classes("head", STORED, {"labels": None}, ())["num_classes"] == 2


@pytest.mark.parametrize("overrides", [{"num_classes": 3}, {"labels": ["yes", "no"]}])
def test_other_classes_are_refused_for_a_trained_head(overrides):
    with pytest.raises(ValueError, match=r"or new_heads=\('head',\). Received: "):
        trained_classes("head", STORED, overrides, ("other",))


def test_a_head_that_starts_anew_has_the_classes_asked_for():
    new = trained_classes("head", STORED, {"labels": ["a", "b", "c"]}, ("head",))
    assert new == {"labels": ["a", "b", "c"], "dropout": 0.1}
    assert trained_classes("head", STORED, {"dropout": 0.3}, ("head",))["num_classes"] == 2
