import keras
import numpy as np
import pytest
from keras import ops

from keras_bert3.layers.masks import attention_mask, causal_mask, masked_softmax, seeing
from tests.layer_checks import to_numpy

PADDING = np.array([[1, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_M2_the_dtype_of_a_mask_does_not_matter(dtype):
    mask = attention_mask(PADDING.astype(dtype))
    assert keras.backend.standardize_dtype(mask.dtype) == "bool"
    np.testing.assert_array_equal(to_numpy(mask)[:, 0, 0], PADDING.astype(bool))


def test_M4_masks_of_rank_two_three_and_four_mean_the_same():
    rows = np.broadcast_to(PADDING[:, None, :], (2, 3, 3))
    for mask in (PADDING, rows, rows[:, None]):
        full = np.broadcast_to(to_numpy(attention_mask(mask)), (2, 1, 3, 3))
        np.testing.assert_array_equal(full[:, 0], rows.astype(bool))


@pytest.mark.parametrize("shape", [(3,), (1, 1, 1, 3, 3)])
def test_M4_any_other_rank_is_refused(shape):
    with pytest.raises(ValueError, match=r"Expected an attention mask .* Received: shape=\("):
        attention_mask(np.ones(shape))


def test_causal_mask_hides_the_future():
    np.testing.assert_array_equal(to_numpy(causal_mask(4))[0, 0], np.tri(4, dtype=bool))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_softmax_is_exact_where_visible_and_zero_where_hidden(dtype):
    scores = np.random.default_rng(0).normal(size=(2, 2, 3, 3)).astype("float32") * 8
    mask = np.array([[[[1, 1, 0]] * 3], [[[0, 0, 0]] * 3]], bool)
    result = masked_softmax(ops.cast(scores, dtype), ops.convert_to_tensor(mask))
    assert keras.backend.standardize_dtype(result.dtype) == dtype
    scores = to_numpy(ops.cast(scores, dtype))[0, :, :, :2]
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    # One unit in the last place of each dtype: probabilities are at most 1.
    tolerance = {"float32": 1e-6, "bfloat16": 2**-8, "float16": 2**-11}[dtype]
    np.testing.assert_allclose(to_numpy(result)[0, :, :, :2], expected, atol=tolerance)
    assert (to_numpy(result)[0, :, :, 2] == 0).all()
    assert np.isfinite(to_numpy(result)[1]).all()
    sees = to_numpy(seeing(ops.convert_to_tensor(mask)))
    np.testing.assert_array_equal(sees[..., 0, 0], [[True] * 3, [False] * 3])
