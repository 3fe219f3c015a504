"""The decoder on a whole network, against equation and figure 2 (b) written out in numpy."""

import math

import keras
import numpy as np
import pytest

from keras_bert3 import DebertaBackbone, DebertaV2Backbone, MaskedLM
from keras_bert3.layers.enhanced_mask_decoder import EnhancedMaskDecoder
from tests.layer_checks import assert_training_moves, compiled, to_numpy
from tests.layers.test_disentangled_self_attention import naive

RNG = np.random.default_rng(6)
TINY = {
    "vocabulary_size": 30,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_sequence_length": 12,
    "dropout": 0.0,
}
KINDS = {
    "v1": (DebertaBackbone, {"span": 5}),
    "v2": (DebertaV2Backbone, {"span": 4, "convolution_size": 3}),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
MASK = (np.arange(9) < np.array([[9], [5]])).astype("int32")
POSITIONS = np.array([[8, 1, 3, 0], [4, 2, 0, 0]], "int32")


def make(kind, **arguments):
    cls, sizes = KINDS[kind]
    task = MaskedLM(cls(**{**TINY, **sizes}), **arguments)
    for weight in task.trainable_weights:
        weight.assign(RNG.normal(0, 0.4, weight.shape))
    return task


def batch(**more):
    return {"token_ids": RNG.integers(5, 30, (2, 9)).astype("int32"), "padding_mask": MASK, **more}


def norm(x, layer):
    gamma, beta = (to_numpy(w).astype("float64") for w in layer.weights)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-7) * gamma + beta


def dense(x, layer):
    return x @ to_numpy(layer.kernel).astype("float64") + to_numpy(layer.bias)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def block(layer, queries, memory, relative, positions):
    attended = naive(layer.attention, queries, memory, relative, positions, MASK)
    inner = norm(queries + attended, layer.attention_norm)
    wide = gelu(dense(inner, layer.feed_forward.intermediate))
    return norm(inner + dense(wide, layer.feed_forward.output_projection), layer.output_norm)


def outputs(task, inputs):
    """What the parts of the network give in one program, as arrays."""

    def calculate(inputs, positions):
        layers = task.backbone(inputs, layer_outputs=True)["layer_outputs"]
        return {
            "every": task(inputs)["masked_lm"],
            "some": task({**inputs, "mask_positions": positions})["masked_lm"],
            "before_last": layers[-2],
            "plain": task.masked_lm_head(layers[-1], task.backbone.token_embeddings),
            "relative": task.backbone.relative_embeddings.rows(),
        }

    received = compiled(calculate, task)(inputs, POSITIONS)
    return {name: to_numpy(value) for name, value in received.items()}


def closed_form(task, hidden, relative, positions, steps, first_query):
    """Logits of the masked language model, from the output of block L - 1 on."""
    backbone = task.backbone
    hidden, relative = hidden.astype("float64"), relative.astype("float64")
    there = np.take_along_axis(hidden, positions[:, :, None], 1)
    queries = np.zeros_like(there)
    if first_query != "hidden":
        queries = queries + to_numpy(task.enhanced_mask_decoder.embeddings)[positions]
    if first_query != "position":
        queries = queries + there
    for _ in range(steps):
        queries = block(backbone.blocks[-1], queries, hidden, relative, positions)
    head = task.masked_lm_head
    features = norm(gelu(dense(queries, head.dense)), head.norm)
    return features @ to_numpy(backbone.token_embeddings).T + to_numpy(head.bias)


@EVERY_KIND
@pytest.mark.parametrize(
    ("steps", "first_query"), [(1, "hidden"), (1, "position"), (2, "position_and_hidden")]
)
def test_equals_the_closed_form_at_masked_positions_and_at_all(kind, first_query, steps):
    task = make(kind, mask_decoder={"num_steps": steps, "first_query": first_query})
    received = outputs(task, batch())
    parts = received["before_last"], received["relative"]
    expected = closed_form(task, *parts, POSITIONS, steps, first_query)
    np.testing.assert_allclose(received["some"], expected, atol=1e-5)
    rows = np.take_along_axis(received["every"], POSITIONS[:, :, None], 1)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    if (steps, first_query) == (1, "hidden"):  # the decoder of BERT
        np.testing.assert_allclose(received["every"], received["plain"], atol=1e-5)


@EVERY_KIND
def test_a_mask_of_pairs_is_followed_to_the_positions_asked(kind):
    task = make(kind)
    pairs = np.tril(np.ones((9, 9), "int32"))[None] * MASK[:, None, :]
    received = outputs(task, batch(padding_mask=pairs))
    rows = np.take_along_axis(received["every"], POSITIONS[:, :, None], 1)
    np.testing.assert_allclose(received["some"], rows, atol=1e-5)


@EVERY_KIND
def test_training_moves_every_weight(kind):
    task = make(kind)
    labels, inputs = RNG.integers(5, 30, POSITIONS.shape), batch(mask_positions=POSITIONS)

    def loss():
        losses = keras.losses.sparse_categorical_crossentropy(
            labels, task(inputs)["masked_lm"], from_logits=True
        )
        return keras.ops.mean(losses)

    # The bias of the keys shifts the scores of a query alike.
    assert_training_moves(task, loss, unmoved=("key/bias",))


@pytest.mark.parametrize("arguments", [{"num_steps": 0}, {"first_query": "nothing"}])
def test_unknown_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="Expected num_steps >= 1 and first_query among"):
        EnhancedMaskDecoder(**arguments)


def test_the_configuration_keeps_every_argument():
    decoder = EnhancedMaskDecoder(7, 3, "position", "zeros", name="d", dtype="float16")
    assert EnhancedMaskDecoder.from_config(decoder.get_config()).get_config() == (
        decoder.get_config()
    )
