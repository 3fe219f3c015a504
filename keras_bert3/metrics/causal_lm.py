"""How well a model predicts the next token."""

import math
from collections.abc import Iterable

import keras
import numpy as np


@keras.saving.register_keras_serializable(package="keras_bert3")
class Perplexity(keras.metrics.Mean):
    """exp of the mean negative log-likelihood in nats, over weighted tokens.

    Call arguments:
        y_true: ids `[b, q]`.
        y_pred: logits `[b, q, v]`.
        sample_weight: `[b, q]`, 0 for what does not count.
    """

    def __init__(self, name="perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch."""
        logits = keras.ops.cast(y_pred, "float32")
        losses = keras.losses.sparse_categorical_crossentropy(y_true, logits, from_logits=True)
        return super().update_state(losses, sample_weight)

    def result(self):
        """The perplexity so far."""
        return keras.ops.exp(super().result())


def evaluate_causal_lm(
    task, batches: Iterable, ends_word: np.ndarray | None = None
) -> dict[str, float]:
    """Score a `CausalLM` over whole batches, every token counted once.

    Args:
        task: the model.
        batches: `(x, labels, weights)`, see `EvaluationWindows`.
        ends_word: bool `[v]`, the ids that end a word; without it nothing is said per word.

    Returns:
        `loss` (nats per token), `perplexity` (per token), `tokens` (their number) and, with
        `ends_word`, `word_perplexity`: the same likelihood shared out over words, which does not
        depend on how a tokenizer cuts them.
    """
    total = tokens = words = 0.0
    for x, labels, weights in batches:
        logits = np.asarray(task.predict_on_batch(x), "float32")
        largest = logits.max(-1)
        normaliser = np.log(np.exp(logits - largest[..., None]).sum(-1)) + largest
        losses = normaliser - np.take_along_axis(logits, labels[..., None], -1)[..., 0]
        total += (losses * weights).sum(dtype="float64")
        tokens += weights.sum(dtype="float64")
        words += 0.0 if ends_word is None else (ends_word[labels] * weights).sum(dtype="float64")
    result = {"loss": total / tokens, "perplexity": math.exp(total / tokens), "tokens": tokens}
    if ends_word is not None:
        result["word_perplexity"] = math.exp(min(total / max(words, 1.0), 700.0))
    return result


def unigram_perplexity(counts: np.ndarray, batches: Iterable) -> float:
    """Perplexity of guessing every token from its frequency alone.

    Args:
        counts: how often each id stands in the training text, `[v]`; one is added to each.
        batches: as for `evaluate_causal_lm`; the same tokens are scored.
    """
    log_probabilities = np.log((counts + 1) / (counts.sum() + len(counts)))
    total = tokens = 0.0
    for _, labels, weights in batches:
        total -= (log_probabilities[labels] * weights).sum(dtype="float64")
        tokens += weights.sum(dtype="float64")
    return math.exp(total / tokens)
