from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.training.optimizers import AdamW, BertAdam
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(0)


def variables(**shapes):
    values = {name: RNG.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    return [keras.Variable(value, name=name) for name, value in values.items()]


def test_gradients_that_are_not_finite_do_not_pass_for_a_small_step():
    kernel, other = variables(kernel=(2, 2), other=(2,))
    optimizer = BertAdam(0.1)
    optimizer.apply([keras.ops.full((2, 2), float("inf")), keras.ops.ones(2)], [kernel, other])
    assert not np.isfinite(to_numpy(optimizer.gradient_norm))
    assert np.isnan(to_numpy(other)).all()


@pytest.mark.parametrize("clip", [1.0, None])
def test_A1_schedules_count_updates_and_the_average_is_clipped(clip):
    kernel, twin = variables(kernel=(3, 2), bias=(2,)), variables(kernel=(3, 2), bias=(2,))
    for new, old in zip(twin, kernel, strict=True):
        new.assign(old)
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 10, end_learning_rate=0.0)
    settings = {"learning_rate": schedule, "weight_decay": 0.1, "global_clipnorm": clip}
    once = BertAdam(**settings)
    often = BertAdam(**settings, gradient_accumulation_steps=4)
    for _ in range(2):
        parts = [[RNG.normal(size=v.shape).astype("float32") for v in kernel] for _ in range(4)]
        for part in parts:
            often.apply([keras.ops.convert_to_tensor(g) for g in part], kernel)
        whole = [np.mean(together, axis=0) for together in zip(*parts, strict=True)]
        once.apply([keras.ops.convert_to_tensor(g) for g in whole], twin)
    assert int(often.iterations) == 2
    np.testing.assert_allclose(float(often.learning_rate), 0.8, rtol=1e-6)
    for one, other in zip(kernel, twin, strict=True):
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), atol=1e-6)


def test_the_first_step_is_corrected_to_the_last_digit():
    weights = variables(kernel=(2, 2))
    for betas in ({}, {"beta_1": 0.0}):
        before = to_numpy(weights[0])
        optimizer = AdamW(1.0, weight_decay=0.0, epsilon=0.0, **betas)
        optimizer.apply([keras.ops.ones((2, 2))], weights)
        np.testing.assert_allclose(before - to_numpy(weights[0]), 1.0, rtol=1e-6)


def test_a_subclass_with_a_formula_of_its_own_keeps_it():
    class Sign(BertAdam):
        def direction(self, m, v):
            return keras.ops.sign(m)

    (weight,) = variables(kernel=(2, 2))
    before = to_numpy(weight)
    Sign(0.5, weight_decay=0.0).apply([keras.ops.ones((2, 2))], [weight])
    np.testing.assert_allclose(to_numpy(weight), before - 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("factors", "message"),
    [({"/nothing/": 0.5}, "'/nothing/', which is in none"), ({"/a/": 1, "/b/": 1}, "a/b.*'/a/'")],
)
def test_a_piece_of_path_in_no_variable_or_two_in_one_is_refused(factors, message):
    with pytest.raises(ValueError, match=message):
        AdamW(0.1, rate_factors=factors).build([SimpleNamespace(path="a/b/kernel")])
