"""Tiny models with weights that are all different and none of them at its starting value."""

import keras
import numpy as np

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints.blank import blank, settle
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

SIZES = {
    "vocabulary_size": 24,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_sequence_length": 16,
}
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "##s", "naive", "cafe"),
    *("he", "##llo", "a", "##a", "!", "mask", "un", "##aff", "##able", "-", "i", "x", "y", "z"),
]
INPUTS = {
    "token_ids": np.array([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], "int32"),
    "segment_ids": np.array([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32"),
}


def scrambled(layer, seed=0):
    """Give every weight of a layer new random values, and return the layer."""
    generator = np.random.default_rng(seed)
    for weight in layer.weights:
        weight.assign(generator.normal(0, 0.5, weight.shape))
    return layer


def backbone(seed=0, **overrides):
    """A backbone; blank before it is scrambled, which spares compiling the initial draws."""
    with blank(lambda: BertBackbone(**{**SIZES, **overrides})) as layer:
        settle(layer, keras.initializers.Zeros())
    return scrambled(layer, seed)


def masked_lm(seed=0, tokenizer=None, **overrides):
    preprocessor = None if tokenizer is None else MaskedLM.preprocessor_class(tokenizer, 16)
    task = MaskedLM(backbone(seed, **overrides), preprocessor=preprocessor)
    for i, head in enumerate(task.heads.values()):
        scrambled(head, seed + 1 + i)
    return task


def logits(task):
    """The logits of INPUTS as arrays."""
    return {name: keras.ops.convert_to_numpy(value) for name, value in task(INPUTS).items()}


def tokenizer(**settings):
    return WordPieceTokenizer(VOCABULARY, **settings)


def weights(layer):
    return [np.asarray(weight.numpy(), "float32") for weight in layer.weights]


def assert_same_weights(first, second):
    assert len(first.weights) == len(second.weights)
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)
