from math import erf

import numpy as np
import pytest

from keras_bert3.layers import activations
from tests.layer_checks import to_numpy

X = np.linspace(-6, 6, 241).astype("float32")


def test_gelu_erf_is_the_normal_distribution_function():
    expected = [x * 0.5 * (1 + erf(x / 2**0.5)) for x in X]
    np.testing.assert_allclose(to_numpy(activations.get("gelu_erf")(X)), expected, atol=1e-6)


def test_gelu_tanh_is_its_approximation():
    expected = 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(to_numpy(activations.get("gelu_tanh")(X)), expected, atol=1e-6)


def test_the_two_differ_as_much_as_published():
    distance = np.abs(to_numpy(activations.gelu_erf(X)) - to_numpy(activations.gelu_tanh(X)))
    assert 4.6e-4 < distance.max() < 4.8e-4


def test_other_names_are_keras_own():
    np.testing.assert_array_equal(to_numpy(activations.get("relu")(X)), np.maximum(X, 0))
    with pytest.raises(ValueError, match="Could not interpret"):
        activations.get("no_such_activation")
