"""How well a model predicts hidden tokens, beside what needs no model."""

import math
from collections.abc import Iterable

import numpy as np


def evaluate_masked_lm(task, batches: Iterable) -> dict[str, float]:
    """Score a `MaskedLM` over whole batches, every prediction counted once.

    Args:
        task: the model.
        batches: `(x, y, sample_weight)` with fixed masks, see `EvaluationBatches`.

    Returns:
        `masked_lm_loss` (nats per predicted token), `masked_lm_accuracy`, `predictions` (their
        number) and, where the batches have it, `next_sentence_loss` and `next_sentence_accuracy`.
    """
    sums: dict[str, np.ndarray] = {}
    for x, y, weights in batches:
        logits = task.predict_on_batch(x)
        for name, labels in y.items():
            scores = _sums(np.asarray(logits[name], "float32"), labels, weights[name])
            sums[name] = sums.get(name, np.zeros(3)) + scores
    result = {}
    for name, (loss, hits, count) in sums.items():
        result[f"{name}_loss"] = loss / count
        result[f"{name}_accuracy"] = hits / count
    result["predictions"] = sums["masked_lm"][2]
    return result


def _sums(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of loss, hits and ones."""
    largest = logits.max(-1, keepdims=True)
    log_normaliser = np.log(np.exp(logits - largest).sum(-1)) + largest[..., 0]
    chosen = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
    loss, hits = log_normaliser - chosen, logits.argmax(-1) == labels
    return np.array([(v * weights).sum(dtype="float64") for v in (loss, hits, np.ones_like(loss))])


def unigram_cross_entropy(counts: np.ndarray, batches: Iterable) -> float:
    """Loss of guessing every hidden token from its frequency alone.

    Args:
        counts: how often each id stands in the training text, `[v]`; one is added to each.
        batches: as for `evaluate_masked_lm`; the same hidden tokens are scored.

    Returns:
        Nats per predicted token. A model that learned nothing but frequencies scores this.
    """
    log_probabilities = np.log((counts + 1) / (counts.sum() + len(counts)))
    total = count = 0.0
    for _, y, weights in batches:
        total -= (log_probabilities[y["masked_lm"]] * weights["masked_lm"]).sum(dtype="float64")
        count += weights["masked_lm"].sum(dtype="float64")
    return float(total / count)


def uniform_cross_entropy(vocabulary_size: int) -> float:
    """Loss of guessing blindly: ln V nats per predicted token."""
    return math.log(vocabulary_size)
