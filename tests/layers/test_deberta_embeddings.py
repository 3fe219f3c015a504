"""DeBERTa's embeddings, table of relative positions and n-grams against loops in numpy."""

import keras
import numpy as np
import pytest
from scipy.special import erf

from keras_bert3.layers.deberta_embeddings import (
    DebertaEmbeddings,
    NGramConvolution,
    RelativeEmbeddings,
)
from tests.layer_checks import to_numpy

IDS = np.array([[3, 1, 4, 1], [5, 2, 0, 0]], "int32")
SEGMENTS = np.array([[0, 1, 1, 0], [1, 0, 0, 0]], "int32")
REAL = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], "int32")
WIDTH = 6


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


GAMMA, BETA = normal(WIDTH, seed=8), normal(WIDTH, seed=9)


def layer_norm(x, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return GAMMA * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) + BETA


@pytest.mark.parametrize("num_segments", [0, 2])
def test_embeddings_are_normed_and_then_masked(num_segments):
    layer = DebertaEmbeddings(7, WIDTH, num_segments, dropout=0.0, layer_norm_epsilon=0.1)
    layer.build(IDS.shape)
    layer.norm.set_weights([GAMMA, BETA])
    other = normal(2, 4, WIDTH)
    summed = to_numpy(layer.token.embeddings)[IDS] + other
    if num_segments:
        summed += to_numpy(layer.segment.embeddings)[SEGMENTS]
    got = to_numpy(layer(IDS, SEGMENTS, REAL, token_vectors=other))
    np.testing.assert_allclose(got, layer_norm(summed, 0.1) * REAL[:, :, None], atol=1e-6)


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_relative_embeddings(epsilon):
    layer = RelativeEmbeddings(8, WIDTH, layer_norm_epsilon=epsilon)
    layer.build()
    layer.embeddings.assign(normal(8, WIDTH))
    if epsilon is not None:
        layer.norm.set_weights([GAMMA, BETA])
    expected = normal(8, WIDTH) if epsilon is None else layer_norm(normal(8, WIDTH), epsilon)
    np.testing.assert_allclose(to_numpy(layer.rows()), expected, atol=1e-6)


def test_n_grams_see_their_neighbours_and_leave_padding_at_zero():
    layer = NGramConvolution(3, dropout=0.0, layer_norm_epsilon=0.1)
    layer.build((2, 4, WIDTH))
    kernel, bias = normal(3, WIDTH, WIDTH), normal(WIDTH, seed=1)
    layer.convolution.set_weights([kernel, bias])
    layer.norm.set_weights([GAMMA, BETA])
    x, y = normal(2, 4, WIDTH, seed=2), normal(2, 4, WIDTH, seed=3)
    expected = np.zeros_like(x)
    for row, place in np.argwhere(REAL):
        gram = bias.astype("float64")
        for offset in (-1, 0, 1):
            if 0 <= place + offset < 4:
                gram = gram + x[row, place + offset] @ kernel[offset + 1]
        active = gram * (1 + erf(gram / np.sqrt(2))) / 2
        expected[row, place] = layer_norm(y[row, place] + active, 0.1)
    np.testing.assert_allclose(to_numpy(layer(x, y, REAL)), expected, atol=2e-6)


@pytest.mark.parametrize(
    "layer",
    [
        DebertaEmbeddings(7, WIDTH, 2, layer_norm_epsilon=0.2),
        RelativeEmbeddings(8, WIDTH, 0.2),
        NGramConvolution(5, "gelu_tanh", layer_norm_epsilon=0.2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_configurations_come_back(layer):
    stored = keras.saving.serialize_keras_object(layer)
    assert keras.saving.deserialize_keras_object(stored).get_config() == layer.get_config()
