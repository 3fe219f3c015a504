"""Predictions for windows: similar lengths together, one program for each length."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


def run_in_batches(
    task, windows: Sequence, pack: Callable[[Sequence], dict], batch_size: int
) -> Iterator[tuple[int, Any]]:
    """Run a task on windows and yield the outputs of each.

    The longest come first, so that a batch has little padding. The last batch is filled up to 1,
    2, 4, 8 ... windows: JAX compiles a program for each shape.

    Args:
        task: a `keras.Model`.
        windows: with `token_ids`.
        pack: from some of them to the task's inputs.
        batch_size: windows in a batch.

    Yields:
        A window's number, and its outputs: an array, or a dict of them.
    """
    order = sorted(range(len(windows)), key=lambda i: -len(windows[i].token_ids))
    for first in range(0, len(order), batch_size):
        numbers = order[first : first + batch_size]
        rows = min(batch_size, 1 << (len(numbers) - 1).bit_length())
        filled = numbers + numbers[-1:] * (rows - len(numbers))
        outputs = task.predict_on_batch(pack([windows[i] for i in filled]))
        for row, number in enumerate(numbers):
            yield number, _row(outputs, row)


def _row(outputs, row: int):
    if isinstance(outputs, dict):
        return {name: np.asarray(values)[row] for name, values in outputs.items()}
    return np.asarray(outputs)[row]
