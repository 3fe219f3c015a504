"""Large batches in small parts: accumulated gradients that are those of the whole batch.

Keras averages the gradients of micro-batches. If each loss is the mean over its own predicted
tokens, a token of a micro-batch with few of them then counts for more than one elsewhere. Here the
weights carry the share of the whole batch instead, and the loss is their sum:

    w'_i = n w_i / sum_j w_j    over all samples j of the whole batch, n parts
    mean_k sum_{i in part k} w'_i loss_i = sum_i w_i loss_i / sum_i w_i

for each output on its own, such as masked LM, which counts tokens, and next-sentence prediction,
which counts rows. The same holds for processes that each train on some rows of a batch and average
their gradients.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np


def accumulated(batches: Iterable, parts: int) -> Iterator[tuple[Any, Any, Any]]:
    """Cut each batch into micro-batches whose accumulated gradients are those of the batch.

    Compile with `summed` losses and an optimiser of `gradient_accumulation_steps=parts`; a schedule
    of `DecoupledAdam` counts batches, not parts.

    Args:
        batches: of `(x, y, sample_weight)` or `(x, y)`: arrays, or dicts of them, whose first axis
            has as many rows as the batch.
        parts: micro-batches of a batch; it divides the rows.

    Yields:
        `(x, y, sample_weight)` of a micro-batch, weights float32.

    Raises:
        ValueError: if `parts` does not divide the rows, or weights are missing for labels of
            several integers a row, where nothing says how many losses that makes.

    Example:
        >>> settings = task.default_compile()
        >>> settings["loss"] = summed(settings["loss"])
        >>> settings["optimizer"] = BertAdam(1e-4, gradient_accumulation_steps=4)
        >>> task.compile(**settings)
        >>> task.fit(accumulated(batches.forever(), 4), steps_per_epoch=4 * 1000)
    """
    yield from shared(batches, parts)


def shared(
    batches: Iterable, parts: int, number: int = 1, index: int = 0, averaged: int = 1
) -> Iterator[tuple[Any, Any, Any]]:
    """Cut each batch as `accumulated` does, and each part once more for the processes of a run.

    Part k of process i of n is rows `(k n + i) r` to `(k n + i + 1) r` of the batch, for r rows
    each. Every process knows the whole batch, and so the shares of its rows in it.

    Args:
        batches: as of `accumulated`, the same in every process.
        parts: micro-batches of a batch.
        number: processes that share it.
        index: of this one.
        averaged: how many gradients are averaged beside those of the parts: the processes where
            each computes its own, 1 where gradients are added, or computed of all rows at once.

    Yields:
        `(x, y, sample_weight)`, weights float32.

    Raises:
        ValueError: as `accumulated`.
    """
    for x, y, *weights in batches:
        sample_weight = _shares(y, weights[0] if weights else None, parts * averaged)
        pieces = [_cut(item, parts * number) for item in (x, y, sample_weight)]
        yield from list(zip(*pieces, strict=True))[index::number]


def part_of(batches: Iterable, number: int, index: int) -> Iterator[tuple]:
    """Cut each batch for the processes of a run, as `shared` does, and leave weights as they are.

    Raises:
        ValueError: if `number` does not divide the rows.
    """
    for batch in batches:
        yield tuple(_cut(item, number)[index] for item in batch)


def summed(loss):
    """Return a loss, or the losses of a dict or list, that adds up instead of averaging.

    Raises:
        ValueError: for what is no `keras.losses.Loss`.
    """
    if isinstance(loss, dict):
        return {name: summed(one) for name, one in loss.items()}
    if isinstance(loss, (list, tuple)):
        return [summed(one) for one in loss]
    if not isinstance(loss, keras.losses.Loss):
        raise ValueError(f"Expected a keras.losses.Loss. Received: {loss!r}")
    return type(loss).from_config({**loss.get_config(), "reduction": "sum"})


def _shares(y, weights, parts):
    """The weights w' of the module's formula, for each output."""
    if isinstance(y, dict):
        weights = weights or {}
        return {name: _shares(one, weights.get(name), parts) for name, one in y.items()}
    if weights is None:
        weights = _ones(np.asarray(y))
    weights = np.asarray(weights, "float32")
    total = weights.sum(dtype="float64")
    return weights * np.float32(parts / total) if total else weights


def _ones(y):
    """A weight for each loss, where none are given."""
    if y.ndim > 1 and y.dtype.kind in "iub":
        raise ValueError(
            "Expected sample_weight for labels of several integers a row. "
            f"Received: labels of shape {y.shape} and no weights"
        )
    return np.ones(y.shape[:1] if y.ndim == 1 else y.shape[:-1], "float32")


def _cut(item, parts):
    """Cut arrays along their first axis."""
    if isinstance(item, dict):
        pieces = {name: _cut(array, parts) for name, array in item.items()}
        return [{name: piece[k] for name, piece in pieces.items()} for k in range(parts)]
    if len(item) % parts:
        raise ValueError(
            f"Expected batches of a multiple of {parts} rows, to cut them into {parts} parts. "
            f"Received: {len(item)} rows"
        )
    return np.split(np.asarray(item), parts)
