import math

import keras
import numpy as np
import pytest

from keras_bert3.training.optimizers import AdamW, BertAdam, GPTAdam, Lamb
from keras_bert3.training.schedules import WarmupCosineDecay
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(0)
ALL = (AdamW, BertAdam, GPTAdam, Lamb)


def variables(**shapes):
    made = []
    for name, shape in shapes.items():
        made.append(keras.Variable(RNG.normal(size=shape).astype("float32"), name=name))
    return made


def length(x):
    return np.sqrt((x**2).sum())


# What one update subtracts, before the rate: m, v, p, decay, epsilon, t -> array.
def adamw(m, v, p, decay, epsilon, t):
    return m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + epsilon) + decay * p


def bert(m, v, p, decay, epsilon, t):
    return m / (np.sqrt(v) + epsilon) + decay * p


def gpt(m, v, p, decay, epsilon, t):
    return bert(m, v, p, decay, epsilon, t) * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)


def lamb(m, v, p, decay, epsilon, t):
    r = adamw(m, v, p, decay, epsilon, t)
    return r * length(p) / length(r) if decay else r


FORMULAS = {AdamW: (adamw, 1e-8), BertAdam: (bert, 1e-6), GPTAdam: (gpt, 1e-8), Lamb: (lamb, 1e-6)}


@pytest.mark.parametrize("optimizer_class", ALL)
def test_updates_equal_the_formula(optimizer_class):
    kernel, bias = variables(kernel=(3, 2), bias=(2,))
    values = [to_numpy(v).astype("float64") for v in (kernel, bias)]
    formula, epsilon = FORMULAS[optimizer_class]
    moments = [[np.zeros_like(v), np.zeros_like(v)] for v in values]
    decay = {"matrix_decay" if optimizer_class is GPTAdam else "weight_decay": 0.1}
    optimizer = optimizer_class(0.01, **decay)
    for t in range(1, 6):
        gradients = [RNG.normal(size=v.shape).astype("float32") for v in values]
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], [kernel, bias])
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients))
        np.testing.assert_allclose(to_numpy(optimizer.gradient_norm), norm, rtol=1e-6)
        for i, gradient in enumerate(gradients):
            gradient = gradient / max(norm, 1.0)
            m, v = moments[i]
            m[...] = 0.9 * m + 0.1 * gradient
            v[...] = 0.999 * v + 0.001 * gradient**2
            values[i] -= 0.01 * formula(m, v, values[i], 0.1 * (i == 0), epsilon, t)
    np.testing.assert_allclose(to_numpy(kernel), values[0], atol=1e-6)
    np.testing.assert_allclose(to_numpy(bias), values[1], atol=1e-6)


def test_without_bias_correction_early_steps_grow_as_measured():
    (weight,) = variables(kernel=(1,))
    optimizer = BertAdam(1.0, weight_decay=0.0, global_clipnorm=None)
    sizes = []
    for _ in range(5):
        before = to_numpy(weight)
        optimizer.apply([keras.ops.ones(1)], [weight])
        sizes.append(float((before - to_numpy(weight))[0]))
    np.testing.assert_allclose(sizes, [3.16, 4.25, 4.95, 5.44, 5.80], atol=0.01)


@pytest.mark.parametrize("optimizer_class", ALL)
def test_W1_norms_and_biases_are_not_decayed_and_embeddings_are(optimizer_class):
    made = variables(kernel=(2, 2), embeddings=(2, 2), bias=(2,), gamma=(2,), beta=(2,))
    before = [to_numpy(v) for v in made]
    optimizer = optimizer_class(0.1)
    assert optimizer.decay_groups(made) == (["kernel", "embeddings"], ["bias", "gamma", "beta"])
    optimizer.apply([keras.ops.zeros(v.shape) for v in made], made)
    moved = [not np.array_equal(old, to_numpy(new)) for old, new in zip(before, made, strict=True)]
    assert moved == [True, True, False, False, False]


@pytest.mark.parametrize("optimizer_class", ALL)
def test_serialisation_keeps_the_settings(optimizer_class):
    decay = {"matrix_decay" if optimizer_class is GPTAdam else "weight_decay": 0.3}
    rates = {"rate_factors": {"/a/": 0.5}}
    schedule = WarmupCosineDecay(1e-4, 100, 1000)
    optimizer = optimizer_class(schedule, epsilon=1e-5, **decay, **rates)
    twin = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(twin) is optimizer_class and twin.get_config() == optimizer.get_config()
    assert (twin.weight_decay, twin.epsilon, twin.global_clipnorm) == (0.3, 1e-5, 1.0)
