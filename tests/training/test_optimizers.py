import keras
import numpy as np

from keras_bert3.training.optimizers import BertAdam
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(0)


def variables(**shapes):
    made = []
    for name, shape in shapes.items():
        made.append(keras.Variable(RNG.normal(size=shape).astype("float32"), name=name))
    return made


def test_updates_equal_the_formula():
    kernel, bias = variables(kernel=(3, 2), bias=(2,))
    values = [to_numpy(v).astype("float64") for v in (kernel, bias)]
    decays = [0.1, 0.0]
    moments = [[np.zeros_like(v), np.zeros_like(v)] for v in values]
    optimizer = BertAdam(0.01, weight_decay=0.1, global_clipnorm=1.0)
    for _ in range(5):
        gradients = [RNG.normal(size=v.shape).astype("float32") for v in values]
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], [kernel, bias])
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients))
        for i, gradient in enumerate(gradients):
            gradient = gradient / max(norm, 1.0)
            m, v = moments[i]
            m[...] = 0.9 * m + 0.1 * gradient
            v[...] = 0.999 * v + 0.001 * gradient**2
            values[i] -= 0.01 * (m / (np.sqrt(v) + 1e-6) + decays[i] * values[i])
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


def test_W1_norms_and_biases_are_not_decayed_and_embeddings_are():
    names = ("kernel", "embeddings", "bias", "gamma", "beta")
    made = variables(**{name: (2,) for name in names})
    before = [to_numpy(v) for v in made]
    optimizer = BertAdam(0.1, weight_decay=0.5)
    optimizer.apply([keras.ops.zeros(2)] * len(made), made)
    moved = {
        name: not np.array_equal(old, to_numpy(new))
        for name, old, new in zip(names, before, made, strict=True)
    }
    assert moved == {
        "kernel": True, "embeddings": True, "bias": False, "gamma": False, "beta": False
    }  # fmt: skip


def test_serialisation_keeps_the_settings():
    optimizer = BertAdam(1e-3, weight_decay=0.05, epsilon=1e-5)
    twin = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(twin, BertAdam)
    assert (twin.weight_decay, twin.epsilon, twin.global_clipnorm) == (0.05, 1e-5, 1.0)
