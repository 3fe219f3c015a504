import keras
import numpy as np
import pytest
from keras import ops

from keras_bert3.objectives.sift import _GAIN, SiFT, _mean, divergence, shift
from keras_bert3.training.gradients import gradient
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 3, 4)).astype("float32")


def probabilities(logits):
    exponential = np.exp(logits - logits.max(-1, keepdims=True))
    return exponential / exponential.sum(-1, keepdims=True)


def test_divergence_is_the_symmetric_one():
    p, q = probabilities(FIRST), probabilities(SECOND)
    expected = (p * np.log(p / q) + q * np.log(q / p)).sum(-1)
    np.testing.assert_allclose(to_numpy(divergence(FIRST, SECOND)), expected, rtol=1e-5)
    np.testing.assert_allclose(to_numpy(divergence(FIRST, FIRST)), 0, atol=1e-6)


def test_gradients_reach_both_logits_as_published():
    p, q = probabilities(FIRST), probabilities(SECOND)
    first, second = ops.convert_to_tensor(FIRST), ops.convert_to_tensor(SECOND)
    found = gradient(lambda x: ops.sum(divergence(x, second)), first)
    np.testing.assert_allclose(to_numpy(found), p - q, atol=1e-6)
    found = gradient(lambda x: ops.sum(divergence(first, x)), second)
    np.testing.assert_allclose(to_numpy(found), q - p, atol=1e-6)


def test_a_single_logit_has_a_divergence_too():
    first, second = ops.convert_to_tensor(FIRST[:, :1]), ops.convert_to_tensor(SECOND[:, :1])
    difference = FIRST[:, 0] - SECOND[:, 0]
    np.testing.assert_allclose(to_numpy(divergence(first, second)), difference**2, rtol=1e-5)
    found = gradient(lambda x: ops.sum(divergence(x, second)), first)
    np.testing.assert_allclose(to_numpy(found)[:, 0], 2 * difference, rtol=1e-5)


def test_half_precision_is_compared_in_float32():
    found = divergence(ops.cast(FIRST, "float16"), ops.cast(SECOND, "float16"))
    assert keras.backend.standardize_dtype(found.dtype) == "float32"


def test_a_step_goes_up_by_the_step_size_at_the_largest_entry_of_each_vector():
    sift, grad = SiFT(step_size=0.5, epsilon=1e-6), RNG.normal(size=(2, 3, 4)).astype("float32")
    grad[0, 0] = 0
    expected = 1 + 0.5 * grad / (1e-6 + np.abs(grad).max(-1, keepdims=True))
    found = to_numpy(sift.step(ops.ones((2, 3, 4)), _GAIN * grad))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_broken_gradient_moves_nothing(bad):
    grad = np.ones((2, 3, 4), "float32")
    grad[1, 2, 3] = bad
    assert (to_numpy(SiFT().step(ops.ones((2, 3, 4)), grad)) == 1).all()


def test_the_first_perturbation_is_normal_and_cut():
    drawn = to_numpy(SiFT().start((40, 50, 10), keras.random.SeedGenerator(3)))
    assert np.abs(drawn).max() <= 0.02 + 1e-7
    # standard deviation of a normal cut at 2: 0.9592
    assert abs(drawn.std() - 0.00959) < 1e-4 and abs(drawn.mean()) < 2e-4


def test_a_shifted_input_is_the_normalised_one_plus_the_perturbation():
    x = 0.02 * RNG.normal(size=(2, 3, 8)).astype("float32")
    d = 0.1 * RNG.normal(size=(2, 3, 8)).astype("float32")
    norm = keras.layers.LayerNormalization(epsilon=1e-7)
    normed = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    expected = to_numpy(norm(ops.convert_to_tensor(normed + d)))
    # epsilon over the variance 4e-4 of x: 2.5e-4 / 2
    np.testing.assert_allclose(
        to_numpy(norm(shift(ops.convert_to_tensor(x), d))), expected, atol=1e-3
    )
    also_straight = gradient(lambda x: ops.sum(x + shift(x, d)), ops.convert_to_tensor(x))
    np.testing.assert_allclose(to_numpy(also_straight), 1)  # no gradient through the shift


def test_means_are_weighted_where_weights_are_given():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    assert to_numpy(_mean(ops.convert_to_tensor(values))) == 2.5
    assert to_numpy(_mean(ops.convert_to_tensor(values), np.array([0, 1]))) == 4
    assert to_numpy(_mean(ops.convert_to_tensor(values), np.array([[0, 1, 0], [0, 0, 3]]))) == 4
    assert to_numpy(_mean(ops.convert_to_tensor(values), np.zeros(2))) == 0


@pytest.mark.parametrize("name", ["weight", "step_size", "noise", "epsilon"])
def test_values_that_are_not_positive_are_refused(name):
    with pytest.raises(ValueError, match=f"Expected a positive {name}. Received: 0"):
        SiFT(**{name: 0})
    with pytest.raises(ValueError, match=f"Expected a positive {name}. Received: inf"):
        SiFT(**{name: np.inf})
