"""Whole reports are in `tests.runs.test_gpt_pretraining`."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.runs.causal_lm_report import evaluate


def test_a_model_is_scored_beside_the_frequencies_of_tokens():
    labels, weights = np.array([[0, 1, 2], [0, 2, 1]]), np.array([[1, 1, 1], [1, 1, 0]])
    tokenizer = SimpleNamespace(vocabulary=["a</w>", "b", "c</w>"])
    task = SimpleNamespace(
        preprocessor=SimpleNamespace(tokenizer=tokenizer),
        predict_on_batch=lambda x: np.zeros((*labels.shape, 3)),  # all tokens alike
    )
    training = SimpleNamespace(token_counts=lambda: np.array([3, 0, 1]))
    phase = SimpleNamespace(evaluation=[({}, labels, weights)], training=training)
    phase.sequence_length = 3
    scores = evaluate(task, phase)
    # Five tokens, of which four end a word; one is added to each of the counts.
    assert scores["tokens"] == 5
    assert scores["perplexity"] == pytest.approx(3)
    assert scores["word_perplexity"] == pytest.approx(3 ** (5 / 4))
    frequencies = [4 / 7, 1 / 7, 2 / 7, 4 / 7, 2 / 7]
    nats = -sum(math.log(f) for f in frequencies)
    assert scores["unigram_perplexity"] == pytest.approx(math.exp(nats / 5))
    assert scores["unigram_word_perplexity"] == pytest.approx(math.exp(nats / 4))
