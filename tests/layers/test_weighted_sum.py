import numpy as np

from keras_bert3.layers.weighted_sum import WeightedSum
from tests.layer_checks import to_numpy


def test_it_is_a_mean_at_first_and_then_as_the_formula_says():
    layers = list(np.random.default_rng(0).normal(size=(3, 2, 4, 5)).astype("float32"))
    layer = WeightedSum()
    np.testing.assert_allclose(to_numpy(layer(layers)), np.mean(layers, 0), atol=1e-6)
    scores, gamma = np.array([0.5, -1.0, 2.0]), np.array(1.5)
    layer.set_weights([scores, gamma])
    shares = np.exp(scores) / np.exp(scores).sum()
    expected = gamma * sum(share * x for share, x in zip(shares, layers, strict=True))
    np.testing.assert_allclose(to_numpy(layer(layers)), expected, rtol=1e-5, atol=1e-5)
