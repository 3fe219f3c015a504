"""What a benchmark's file holds, in the form in which tasks take it."""

import dataclasses
import logging
from typing import Any

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Examples:
    """Texts with labels.

    Args:
        columns: a list of texts for each input: one, or two for pairs; for multiple choice the
            contexts and the lists of choices; for question answering questions and texts; for
            tags one column of lists of words.
        labels: one for each row: a name, a number, or what the benchmark's task takes; None where
            the file keeps them secret.
        ids: of the rows, as the file has them, or their numbers from 0.
        skipped: line numbers, from 1, of rows that could not be read.
    """

    columns: tuple[list[Any], ...]
    labels: list[Any] | None
    ids: list[str]
    skipped: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def inputs(self) -> Any:
        """What `fit` and `predict` take: a list, or a pair of lists."""
        return self.columns[0] if len(self.columns) == 1 else self.columns

    def known_labels(self) -> list[Any]:
        """The labels.

        Raises:
            ValueError: where there are none.
        """
        if self.labels is None:
            raise ValueError(
                f"Expected examples with labels. Received: {len(self)} examples with no labels, "
                "as the test files of most benchmarks"
            )
        return self.labels

    def first(self, count: int) -> "Examples":
        """The first `count` examples."""
        labels = None if self.labels is None else self.labels[:count]
        return Examples(tuple(c[:count] for c in self.columns), labels, self.ids[:count])


def report_skipped(skipped: list[tuple[int, str]], source: Any) -> tuple[int, ...]:
    """Log which lines could not be read and why, and return their numbers."""
    if skipped:
        number, reason = skipped[0]
        _LOG.warning(
            "Skipped %d lines of %s; the first is line %d: %s",
            len(skipped),
            source,
            number,
            reason,
        )
    return tuple(number for number, _ in skipped)
