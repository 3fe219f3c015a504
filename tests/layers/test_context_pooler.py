import numpy as np
import pytest

from keras_bert3.layers.context_pooler import ContextPooler
from tests.layer_checks import check_layer, to_numpy

RNG = np.random.default_rng(1)


def test_follows_the_layer_contract():
    check_layer(ContextPooler(), RNG.normal(size=(2, 5, 8)).astype("float32"))


def test_equals_the_formula_on_the_first_token_alone():
    scipy = pytest.importorskip("scipy.special")
    hidden = RNG.normal(size=(2, 3, 8)).astype("float32")
    pooler = ContextPooler()
    pooler.build(hidden.shape)
    pooler.set_weights([RNG.normal(size=weight.shape) for weight in pooler.get_weights()])
    kernel, bias = (to_numpy(weight).astype("float64") for weight in pooler.weights)
    dense = hidden[:, 0] @ kernel + bias
    expected = dense * (1 + scipy.erf(dense / np.sqrt(2))) / 2
    received = to_numpy(pooler(hidden))
    np.testing.assert_allclose(received, expected, atol=1e-5)
    hidden[:, 1:] = 0
    np.testing.assert_array_equal(to_numpy(pooler(hidden)), received)


def test_dropout_acts_before_the_projection_in_training_only():
    pooler = ContextPooler(dropout=0.5)
    hidden = np.ones((4, 2, 64), "float32")
    still = to_numpy(pooler(hidden))
    assert np.abs(still - to_numpy(pooler(hidden, training=True))).max() > 1e-3
    np.testing.assert_array_equal(still, to_numpy(pooler(hidden, training=False)))
