import keras
import numpy as np
import pytest

from keras_bert3.layers.last_token import last_token
from tests.layer_checks import to_numpy


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_GP1_the_last_real_token_is_found_wherever_padding_is(dtype):
    hidden = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
    received = to_numpy(last_token(hidden, mask.astype(dtype)))
    np.testing.assert_array_equal(received, hidden[np.arange(4), [4, 1, 4, 0]])


def test_unknown_lengths():
    hidden, mask = keras.Input((None, 3)), keras.Input((None,), dtype="bool")
    assert last_token(hidden, mask).shape == (None, 3)
