import numpy as np
import pytest

from keras_bert3.layers.replaced_token_head import ReplacedTokenHead
from tests.layer_checks import check_layer, to_numpy

RNG = np.random.default_rng(1)


def test_follows_the_layer_contract():
    check_layer(ReplacedTokenHead(), RNG.normal(size=(2, 5, 8)).astype("float32"))


def test_equals_the_formula():
    scipy = pytest.importorskip("scipy.special")
    head = ReplacedTokenHead(layer_norm_epsilon=1e-7)
    hidden = RNG.normal(size=(2, 3, 8))
    head.build(hidden.shape)
    head.set_weights([RNG.normal(size=weight.shape) for weight in head.get_weights()])
    gamma, beta, kernel, bias, vector, constant = (to_numpy(w) for w in head.weights)
    summed = hidden + hidden[:, :1]
    normed = summed - summed.mean(-1, keepdims=True)
    normed = normed / np.sqrt((normed**2).mean(-1, keepdims=True) + 1e-7) * gamma + beta
    dense = normed @ kernel + bias
    activated = dense * (1 + scipy.erf(dense / np.sqrt(2))) / 2
    expected = activated @ vector + constant
    np.testing.assert_allclose(to_numpy(head(hidden.astype("float32"))), expected, atol=1e-5)
