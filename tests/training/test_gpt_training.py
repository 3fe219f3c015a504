import math

import keras
import numpy as np
import pytest

from keras_bert3.training.optimizers import GPTAdam
from keras_bert3.training.schedules import WarmupCosineDecay
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(0)


def test_updates_equal_the_formula_and_matrices_alone_are_decayed():
    kernel, bias = (keras.Variable(RNG.normal(size=s).astype("float32")) for s in ((3, 2), (2,)))
    values = [to_numpy(v).astype("float64") for v in (kernel, bias)]
    moments = [[np.zeros_like(v), np.zeros_like(v)] for v in values]
    rates = WarmupCosineDecay(0.1, 2, 6)
    optimizer = GPTAdam(rates, matrix_decay=0.1)
    for t in range(1, 7):
        gradients = [RNG.normal(size=v.shape).astype("float32") for v in values]
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], [kernel, bias])
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients))
        x = (t - 1) / 6
        rate = 0.1 * (x / (2 / 6) if x <= 2 / 6 else 0.5 * (1 + math.cos(math.pi * x)))
        rate *= math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        for i, gradient in enumerate(gradients):
            gradient = gradient / max(norm, 1.0)
            m, v = moments[i]
            m[...] = 0.9 * m + 0.1 * gradient
            v[...] = 0.999 * v + 0.001 * gradient**2
            decay = 0.1 * values[i] if i == 0 else 0.0
            values[i] -= rate * (m / (np.sqrt(v) + 1e-8) + decay)
    np.testing.assert_allclose(to_numpy(kernel), values[0], atol=1e-5)
    np.testing.assert_allclose(to_numpy(bias), values[1], atol=1e-5)


def test_the_rate_warms_up_and_follows_half_a_cosine():
    schedule = WarmupCosineDecay(2.5e-4, 100, 1000)
    rates = [float(schedule(step)) for step in (0, 50, 100, 101, 500, 1000, 1200)]
    dropped = 1.25e-4 * (1 + math.cos(math.pi * 0.101))
    np.testing.assert_allclose(rates, [0, 1.25e-4, 2.5e-4, dropped, 1.25e-4, 0, 0], atol=1e-9)
    assert float(WarmupCosineDecay(0.5, 0, 10)(0)) == 0.5
    with pytest.raises(ValueError, match="warmup_steps=20, total_steps=10"):
        WarmupCosineDecay(1e-4, 20, 10)


def test_serialisation():
    optimizer = GPTAdam(WarmupCosineDecay(1e-4, 100, 1000), matrix_decay=0.3)
    twin = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert twin.get_config() == optimizer.get_config() and twin.matrix_decay == 0.3
