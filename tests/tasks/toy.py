"""A small vocabulary, model and text for the tests of tasks and runs."""

import numpy as np

from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

WORDS = "the cat dog sat ran on mat log and then it slept all day long under a tree ##s".split()
TEXTS = [
    "the cat sat on the mat",
    "the dog ran and then it slept",
    "a cat slept all day under the tree",
    "the dog sat on a log all day long",
] * 3
SIZE = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 32,
    "dropout": 0.0,  # compiles sooner on JAX
}


def tokenizer():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])


def backbone(**arguments):
    vocabulary_size = tokenizer().vocabulary_size
    return BertBackbone(**{"vocabulary_size": vocabulary_size, **SIZE, **arguments})


def masked_lm(next_sentence=False, sequence_length=16, **arguments):
    preprocessor = MaskedLMPreprocessor(tokenizer(), sequence_length)
    return MaskedLM(backbone(**arguments), next_sentence, preprocessor)


def batch(rows=4, length=12, predictions=3, seed=0):
    """Arrays for `MaskedLM` with next-sentence prediction; predictions of the first row only 1."""
    rng = np.random.default_rng(seed)
    size = tokenizer().vocabulary_size
    weights = np.ones((rows, predictions), "float32")
    weights[0, 1:] = 0
    x = {
        "token_ids": rng.integers(5, size, (rows, length)).astype("int32"),
        "segment_ids": np.repeat([[0] * (length // 2) + [1] * (length - length // 2)], rows, 0),
        "padding_mask": np.ones((rows, length), bool),
        "mask_positions": np.sort(rng.integers(1, length, (rows, predictions)), 1).astype("int32"),
    }
    y = {
        "masked_lm": rng.integers(5, size, (rows, predictions)).astype("int32"),
        "next_sentence": rng.integers(0, 2, rows).astype("int32"),
    }
    return x, y, {"masked_lm": weights, "next_sentence": np.ones(rows, "float32")}
