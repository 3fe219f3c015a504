from math import erf

import numpy as np
from keras import ops

from keras_bert3.layers.masked_lm_head import MaskedLMHead, gather_positions
from tests.layer_checks import check_layer, to_numpy

RNG = np.random.default_rng(2)
TABLE = RNG.normal(size=(7, 4)).astype("float32")


def test_gather_picks_rows_in_any_order_and_repeatedly():
    hidden = RNG.normal(size=(2, 5, 3)).astype("float32")
    positions = np.array([[4, 0, 0], [1, 1, 3]])
    expected = np.stack([row[index] for row, index in zip(hidden, positions, strict=True)])
    np.testing.assert_array_equal(to_numpy(gather_positions(hidden, positions)), expected)


def test_equals_the_formula_with_its_own_epsilon():
    layer = MaskedLMHead(7, 4, activation="gelu_erf", layer_norm_epsilon=0.1, name="head")
    hidden = RNG.normal(size=(2, 3, 4)).astype("float32")
    layer.build(hidden.shape)
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.get_weights()])
    weights = {w.path.split("/", 1)[1]: to_numpy(w).astype("float64") for w in layer.weights}
    inner = hidden @ weights["dense/kernel"] + weights["dense/bias"]
    inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / 2**0.5))
    centred = inner - inner.mean(-1, keepdims=True)
    inner = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 0.1)
    inner = inner * weights["norm/gamma"] + weights["norm/beta"]
    expected = inner @ TABLE.T + weights["bias"]
    np.testing.assert_allclose(to_numpy(layer(hidden, TABLE)), expected, atol=1e-5)


def test_layer_contract():
    class WithTable(MaskedLMHead):
        def call(self, hidden):
            return super().call(hidden, ops.cast(TABLE, hidden.dtype))

    layer = WithTable(7, 4, name="head")
    hidden = RNG.normal(size=(2, 3, 4)).astype("float32")
    check_layer(layer, hidden)
