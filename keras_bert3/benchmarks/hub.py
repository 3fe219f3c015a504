"""Benchmarks by name, from the hub of Hugging Face, where the package `datasets` is installed."""

import importlib
from typing import Any

from keras_bert3.benchmarks import (
    glue,
    inference,
    multiple_choice,
    named_entities,
    squad,
    superglue,
)
from keras_bert3.benchmarks.examples import Examples

SPLITS = {"train": "train", "dev": "validation", "test": "test"}
BENCHMARKS: dict[str, Any] = {
    **glue.BENCHMARKS,
    **inference.BENCHMARKS,
    **superglue.BENCHMARKS,
    **multiple_choice.BENCHMARKS,
    **squad.BENCHMARKS,
    **named_entities.BENCHMARKS,
}
"""Every benchmark by its short name, such as `mrpc` and `squad2`."""


def find(name: str) -> Any:
    """Return a benchmark by its short name.

    Raises:
        ValueError: listing the names, for another.

    Example: `find("mrpc").labels` is `("not_equivalent", "equivalent")`.
    """
    if name not in BENCHMARKS:
        raise ValueError(f"Expected a benchmark among {sorted(BENCHMARKS)}. Received: {name!r}")
    return BENCHMARKS[name]


def fetch(name: str, split: str) -> Examples:
    """Download a split, or take it from the cache of `datasets`, as `read` takes it from a file.

    Args:
        name: short name of a benchmark.
        split: "train", "dev" or "test".

    Raises:
        ImportError: where `datasets` is not installed.
        ValueError: for a benchmark or split that is not there.
    """
    benchmark = find(name)
    if not benchmark.hub or split not in SPLITS:
        raise ValueError(
            f"Expected a benchmark that the hub has and a split among {sorted(SPLITS)}. "
            f"Received: {name!r}, {split!r}"
        )
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        raise ImportError(
            f"Expected the package `datasets` to fetch {benchmark.name} by name; without it, read "
            "its official files from a folder. Received: no such package"
        ) from error
    their_split = {**SPLITS, **getattr(benchmark, "hub_splits", {})}[split]
    return benchmark.from_hub(datasets.load_dataset(*benchmark.hub, split=their_split))
