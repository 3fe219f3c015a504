"""From a data set's labels to what a loss takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def class_ids(labels: Any, num_classes: int, names: Sequence[str] | None = None) -> np.ndarray:
    """Turn labels into numbers of classes, by name where they are names.

    Data sets and models order the same classes differently; a name says which is meant, a number
    does not.

    Args:
        labels: names, or numbers from 0 to `num_classes` - 1, one an example; an array of more
            axes (class probabilities, for a loss that takes them) is left as it is.
        num_classes: how many classes there are.
        names: of the classes, in the order of the model's outputs; None where they have none.

    Returns:
        int32 `[n]`.

    Raises:
        ValueError: naming the first label that is no class: an unknown name, a name where the model
            has none, a number outside the range. -1 marks examples without a label, as in the test
            files of GLUE.
    """
    values = np.asarray(labels)
    if values.ndim > 1:
        return values
    if values.dtype.kind in "UOS" and values.size and isinstance(values.flat[0], str | bytes):
        return _ids_of_names(values, names)
    if values.dtype.kind not in "iubf" or not np.array_equal(values, np.trunc(values)):
        raise ValueError(
            "Expected labels that are names or whole numbers. "
            f"Received: {values.flat[0]!r}, of type {values.dtype}"
        )
    outside = np.flatnonzero((values < 0) | (values >= num_classes))
    if len(outside):
        place, value = int(outside[0]), int(values[outside[0]])
        without = ": no labels, for -1 stands for a label that is not known" if value == -1 else ""
        raise ValueError(
            f"Expected labels in the range [0, {num_classes}). "
            f"Received: {value} at position {place}{without}"
        )
    return values.astype("int32")


def _ids_of_names(values: np.ndarray, names: Sequence[str] | None) -> np.ndarray:
    """Look names up; a class without a name cannot be meant by one."""
    if names is None:
        raise ValueError(
            "Expected labels as numbers, since the classes of this task have no names (labels=None "
            f"when it was made). Received: {str(values.flat[0])!r}"
        )
    number_of = {name: number for number, name in enumerate(names)}
    unknown = [str(value) for value in values if str(value) not in number_of]
    if unknown:
        raise ValueError(f"Expected labels among {list(names)}. Received: {unknown[0]!r}")
    return np.array([number_of[str(value)] for value in values], "int32")


def scores(labels: Any) -> np.ndarray:
    """Turn the labels of a regression into float32 `[n]`.

    Raises:
        ValueError: naming the first that is not a finite number.
    """
    try:
        values = np.asarray(labels, "float32")
    except (TypeError, ValueError) as error:
        raise ValueError(f"Expected numbers for labels. Received: {error}") from error
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        raise ValueError(
            f"Expected finite numbers for labels. Received: {values[where]} at {where}"
        )
    return values


def check_names(labels: Sequence[str] | None, num_classes: int | None) -> tuple[list | None, int]:
    """Return the names of the classes, if they have any, and their number.

    Raises:
        ValueError: if neither is given, they contradict each other, or two names are alike.
    """
    names = None if labels is None else [str(label) for label in labels]
    if names is None and num_classes is None:
        raise ValueError("Expected num_classes or labels. Received: neither")
    count = len(names or ()) if num_classes is None else num_classes
    if count < 1:
        raise ValueError(f"Expected at least one class. Received: num_classes={count}")
    if names is not None and len(set(names)) != count:
        raise ValueError(
            f"Expected num_classes={count} different names for labels. Received: {names}"
        )
    return names, count
