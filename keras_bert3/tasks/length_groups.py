"""Orders in which texts about as long as one another share a batch, so that padding is short."""

import numpy as np

POOL = 50
"""Batches that are sorted together: a batch is of one length, yet not the same batch each epoch."""


def grouped_order(lengths, batch_size: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Order texts so that each `batch_size` of them in turn are about equally long.

    What is left over for a smaller last batch are the longest texts, in every epoch the same: where
    rows are padded to one of k lengths, all batches together have k + 1 shapes at most, and JAX
    compiles no more programs than that.

    Args:
        lengths: of the texts, in any unit.
        batch_size: texts in a batch.
        rng: draws the order of texts and of batches; None keeps to lengths, the longest first.

    Returns:
        int64 `[n]`, each text once.

    Example: `grouped_order([1, 9, 2, 8, 5], 2)` is `[3, 4, 2, 0, 1]`.
    """
    lengths = np.asarray(lengths)
    longest_first = np.argsort(-lengths, kind="stable")
    full = len(lengths) - len(lengths) % batch_size
    others, last = longest_first[len(lengths) - full :], longest_first[: len(lengths) - full]
    if rng is not None:
        others = rng.permutation(np.sort(others))
        pools = [
            others[begin : begin + POOL * batch_size] for begin in range(0, full, POOL * batch_size)
        ]
        others = np.concatenate([p[np.argsort(-lengths[p], kind="stable")] for p in pools] or [[]])
        others = rng.permutation(others.reshape(-1, batch_size)).reshape(-1)
    return np.concatenate([others, last]).astype("int64")


def length_of(text) -> int:
    """Tokens of a window; characters of a text, or of the longest of several."""
    if hasattr(text, "token_ids"):
        return len(text.token_ids)
    return len(text) if isinstance(text, str) else max(map(len, text), default=0)


def lengths_of(columns) -> np.ndarray:
    """Lengths of rows, whose columns stand one after another."""
    return np.sum([[length_of(text) for text in column] for column in columns], axis=0)
