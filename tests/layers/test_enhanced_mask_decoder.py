"""The decoder on a whole network, against equation and figure 2 (b) written out in numpy."""

import math

import numpy as np
import pytest

from keras_bert3 import DebertaBackbone, DebertaV2Backbone, MaskedLM
from keras_bert3.layers.enhanced_mask_decoder import EnhancedMaskDecoder
from tests.layer_checks import to_numpy
from tests.layers.test_disentangled_self_attention import naive

RNG = np.random.default_rng(6)
TINY = {
    "vocabulary_size": 30,
    "num_layers": 3,
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


def closed_form(task, inputs, positions, steps, first_query):
    """Logits of the masked language model, from the output of block L - 1 on."""
    backbone = task.backbone
    hidden = to_numpy(backbone(inputs, layer_outputs=True)["layer_outputs"][-2]).astype("float64")
    relative = to_numpy(backbone.relative_embeddings.rows()).astype("float64")
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
@pytest.mark.parametrize("first_query", ["position_and_hidden", "position", "hidden"])
@pytest.mark.parametrize("steps", [1, 2])
def test_equals_the_closed_form_at_masked_positions_and_at_all(kind, first_query, steps):
    task = make(kind, mask_decoder={"num_steps": steps, "first_query": first_query})
    inputs = batch()
    every = to_numpy(task(inputs)["masked_lm"])
    some = to_numpy(task({**inputs, "mask_positions": POSITIONS})["masked_lm"])
    expected = closed_form(task, inputs, POSITIONS, steps, first_query)
    np.testing.assert_allclose(some, expected, atol=1e-5)
    rows = np.take_along_axis(every, POSITIONS[:, :, None], 1)
    np.testing.assert_allclose(rows, expected, atol=1e-5)


@EVERY_KIND
def test_one_step_without_positions_is_the_decoder_of_bert(kind):
    task = make(kind, mask_decoder={"num_steps": 1, "first_query": "hidden"})
    inputs = batch()
    last = task.backbone(inputs)["sequence_output"]
    expected = to_numpy(task.masked_lm_head(last, task.backbone.token_embeddings))
    np.testing.assert_allclose(to_numpy(task(inputs)["masked_lm"]), expected, atol=1e-5)


@EVERY_KIND
def test_a_mask_of_pairs_is_followed_to_the_positions_asked(kind):
    task = make(kind)
    pairs = np.tril(np.ones((9, 9), "int32"))[None] * MASK[:, None, :]
    inputs = batch(padding_mask=pairs)
    every = to_numpy(task(inputs)["masked_lm"])
    some = to_numpy(task({**inputs, "mask_positions": POSITIONS})["masked_lm"])
    np.testing.assert_allclose(some, np.take_along_axis(every, POSITIONS[:, :, None], 1), atol=1e-5)


@EVERY_KIND
def test_training_moves_every_weight(kind):
    task = make(kind)
    task.compile(optimizer="sgd")
    before = [to_numpy(weight) for weight in task.trainable_weights]
    labels = RNG.integers(5, 30, POSITIONS.shape)
    task.fit(
        batch(mask_positions=POSITIONS),
        {"masked_lm": labels},
        sample_weight={"masked_lm": np.ones(POSITIONS.shape, "float32")},
        verbose=0,
    )
    for weight, old in zip(task.trainable_weights, before, strict=True):
        unmoved = weight.path.endswith("key/bias")  # shifts the scores of a query alike
        assert unmoved or not np.array_equal(old, to_numpy(weight)), weight.path


@pytest.mark.parametrize("arguments", [{"num_steps": 0}, {"first_query": "nothing"}])
def test_unknown_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="Expected num_steps >= 1 and first_query among"):
        EnhancedMaskDecoder(**arguments)


def test_the_configuration_keeps_every_argument():
    decoder = EnhancedMaskDecoder(7, 3, "position", "zeros", name="d", dtype="float16")
    assert EnhancedMaskDecoder.from_config(decoder.get_config()).get_config() == (
        decoder.get_config()
    )
