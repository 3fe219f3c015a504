import keras
import numpy as np
import pytest

from keras_bert3.checkpoints import mapping, transfer

RULES = [
    mapping.split(("q", "k"), "qk.weight", transposed=True),
    mapping.tie("bias", "a.bias", "b.bias"),
    mapping.rename("absent", "elsewhere"),
]


def variables():
    return {
        "q": keras.Variable(np.zeros((3, 2), "float32")),
        "k": keras.Variable(np.zeros((3, 2), "float32")),
        "bias": keras.Variable(np.zeros(2, "float32")),
    }


def load(tensors, into=None):
    names = {name: f"x.{name}" for name in tensors}
    into = variables() if into is None else into
    read = {f"x.{name}": value for name, value in tensors.items()}.__getitem__
    return into, transfer.load(RULES, names, read, into, "'here'")


def test_there_and_back():
    joined = np.arange(12, dtype="float32").reshape(4, 3)
    filled, report = load({"qk.weight": joined, "b.bias": np.ones(2, "float32")})
    np.testing.assert_array_equal(filled["q"].numpy(), joined[:2].T)
    np.testing.assert_array_equal(filled["k"].numpy(), joined[2:].T)
    assert report.loaded == ("q", "k", "bias")
    saved = dict(transfer.save(RULES, filled))
    assert set(saved) == {"qk.weight", "a.bias"}
    np.testing.assert_array_equal(saved["qk.weight"], joined)


def test_what_is_missing_and_what_is_over():
    filled, report = load({"a.bias": np.ones(2, "float32"), "elsewhere": np.ones(1)})
    assert report.newly_initialised == ("q", "k")
    assert report.unexpected == ("x.elsewhere",)
    np.testing.assert_array_equal(filled["q"].numpy(), 0)


def test_nothing_at_all_is_an_error():
    with pytest.raises(ValueError, match="Received: none that match among 1, such as x.stranger"):
        load({"stranger": np.ones(1)})


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"Expected shape \(2,\) for `bias`.*\(3,\) from `a.bias`"):
        load({"a.bias": np.ones(3)})
    with pytest.raises(ValueError, match="divides into `q, k`"):
        load({"qk.weight": np.ones((5, 3))})


def test_copies_must_agree():
    with pytest.raises(ValueError, match="`a.bias` and `b.bias` in 'here' to be the same tensor"):
        load({"a.bias": np.ones(2), "b.bias": np.zeros(2)})


def test_a_variable_without_a_place_is_not_lost():
    with pytest.raises(ValueError, match="Received: stray"):
        list(transfer.save(RULES, {**variables(), "stray": keras.Variable(np.zeros(1))}))
