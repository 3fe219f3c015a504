import keras
import numpy as np
import pytest

from keras_bert3.training import fused_adam
from keras_bert3.training.optimizers import AdamW, BertAdam, GPTAdam
from tests.layer_checks import to_numpy

IS_TORCH = keras.backend.backend() == "torch"


def test_there_is_a_kernel_on_pytorch_for_floats_alone():
    weight, count = (
        keras.Variable(np.ones(2, "float32")),
        keras.Variable(1, dtype="int32", trainable=False),
    )
    assert fused_adam.is_available([weight]) is IS_TORCH
    assert not fused_adam.is_available([weight, count])


@pytest.mark.skipif(not IS_TORCH, reason="a kernel of PyTorch")
@pytest.mark.parametrize("optimizer_class", [AdamW, BertAdam, GPTAdam])
def test_the_kernel_takes_the_steps_of_the_formula(monkeypatch, optimizer_class):
    rng, found = np.random.default_rng(0), []
    start = [rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(2, 2))]
    gradients = [[rng.normal(size=value.shape) for value in start] for _ in range(3)]
    for has_kernel in (True, False):
        monkeypatch.setattr(fused_adam, "is_available", lambda variables, has=has_kernel: has)
        names = ("a/kernel", "a/bias", "b/kernel")
        weights = [
            keras.Variable(value.astype("float32"), name=name.replace("/", "_"))
            for value, name in zip(start, names, strict=True)
        ]
        optimizer = optimizer_class(0.1, rate_factors={weights[2].path: 0.5})
        for step in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(g, "float32") for g in step], weights)
        found.append([to_numpy(weight) for weight in weights])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
