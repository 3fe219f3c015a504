import numpy as np
import pytest

from keras_bert3.layers.feed_forward import FeedForward
from tests.layer_checks import check_layer


def test_equals_the_formula():
    layer = FeedForward(12, activation="gelu_tanh", name="feed_forward")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    layer.build(x.shape)
    layer.set_weights([np.random.default_rng(1).normal(size=w.shape) for w in layer.get_weights()])
    result = check_layer(layer, x, tolerance=1e-5)
    w1, b1, w2, b2 = (np.array(w, "float64") for w in layer.get_weights())
    inner = x @ w1 + b1
    inner = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
    np.testing.assert_allclose(result, inner @ w2 + b2, atol=1e-5)


def test_the_two_kernels_start_apart():
    layer = FeedForward(4)
    layer.build((None, None, 4))
    assert not np.allclose(layer.get_weights()[0], layer.get_weights()[2])


def test_plain_gelu_is_refused():
    with pytest.raises(ValueError, match="which GELU is meant"):
        FeedForward(4, activation="gelu").build((None, None, 4))
