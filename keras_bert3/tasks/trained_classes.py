"""The classes of a trained head keep their number and their names."""

from collections.abc import Collection, Mapping
from typing import Any

_CLASSES = ("num_classes", "labels")


def trained_classes(
    head: str, stored: Mapping[str, Any], overrides: Mapping[str, Any], new_heads: Collection[str]
) -> dict[str, Any]:
    """Replace constructor arguments of a stored task, but not what gives its head a meaning.

    Args:
        head: name of the head.
        stored: arguments with which the task was trained.
        overrides: arguments asked for.
        new_heads: heads that start anew; their classes are as asked for.

    Raises:
        ValueError: for another number or other names of classes than the head was trained with.

    Example: `trained_classes("head", {"num_classes": 2}, {"num_classes": 3}, ("head",))` is
    `{"num_classes": 3}`.
    """
    if head in new_heads and any(name in overrides for name in _CLASSES):
        stored = {name: value for name, value in stored.items() if name not in _CLASSES}
    for name in _CLASSES:
        old, new = (_plain(given.get(name)) for given in (stored, overrides))
        if old is not None and new is not None and old != new:
            raise ValueError(
                f"Expected {name}={old!r}, with which the head was trained, or "
                f"new_heads=({head!r},). Received: {name}={new!r}"
            )
    return {**stored, **overrides}


def _plain(value):
    return list(value) if isinstance(value, list | tuple) else value
