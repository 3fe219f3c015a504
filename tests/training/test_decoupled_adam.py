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


def test_look_ups_of_a_repeated_id_give_the_square_of_their_sum():
    # Keras 3.15 on TensorFlow keeps the sum of their squares: 3 instead of 9.
    model = keras.Sequential([keras.layers.Embedding(2, 1), keras.layers.Flatten()])
    model.compile(BertAdam(0.1, global_clipnorm=None, beta_2=0.0), Total())
    model.fit(np.zeros((1, 3), "int32"), np.zeros((1, 1)), verbose=0)
    np.testing.assert_allclose(to_numpy(model.optimizer._velocities[0]), [[9.0], [0.0]])
    np.testing.assert_allclose(float(model.optimizer.gradient_norm), 3.0)


class Total(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.sum(y_pred, axis=-1)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_the_end_of_data_of_unknown_length_is_no_update():
    # Keras 3.15 on TensorFlow counts one more, and decays once more, at the end of each epoch.
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(BertAdam(0.1, weight_decay=0.5), "mse")
    for _ in range(2):
        batches = ((np.ones((2, 2)), np.ones((2, 1))) for _ in range(3))
        model.fit(batches, verbose=0, shuffle=False)
    assert int(model.optimizer.iterations) == 6


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
