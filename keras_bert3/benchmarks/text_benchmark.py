"""A benchmark of one text or two and a label, as an entry of a table."""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert3.benchmarks.examples import Examples, report_skipped
from keras_bert3.benchmarks.tables import find_file, read_json_lines, read_tabs
from keras_bert3.metrics.glue import METRICS

NO_LABEL = ("-1", "-")
"""How files mark an example without a label: hidden, or without agreement among annotators."""
FILES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}


@dataclasses.dataclass(frozen=True)
class TextBenchmark:
    """Columns, labels, metric and submission of one benchmark.

    Args:
        name: in papers.
        texts: for each text the names its column has in one file or another.
        metric: a key of `metrics.glue.METRICS`.
        labels: names of the classes; none for a regression. A file's number i means the i-th.
        label: the names that the column of labels has.
        files: for each split the names that its file has.
        headers: columns of the splits whose files have no header.
        other_names: what files call classes otherwise.
        submission: name of the file that is sent in, and whether classes go into it by number.
        by_number: whether classes go into the submission as numbers.
        hub: arguments of `datasets.load_dataset`.
        hub_splits: names of splits there, where they are others than `hub.SPLITS` says.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    metric: str = "accuracy"
    labels: tuple[str, ...] = ()
    label: tuple[str, ...] = ("label", "gold_label")
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: FILES)
    headers: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    other_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    submission: str = ""
    by_number: bool = False
    hub: tuple[str, ...] = ()
    hub_splits: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def num_classes(self) -> int:
        """Outputs of a classifier: 1 for a regression."""
        return len(self.labels) or 1

    def read(self, path: str | os.PathLike, split: str, is_quoted: bool = False) -> Examples:
        """Read a split from its official file.

        Texts are left as they stand. Rows with too few fields, and labelled splits' rows without a
        label, are skipped, counted and logged.

        Args:
            path: the folder of the benchmark, or the file.
            split: such as "train", "dev" and "test"; see `files`.
            is_quoted: see `read_tabs`.

        Raises:
            ValueError: for another split, a missing file or column, or a label that is no class.
        """
        names = self.files.get(split)
        if names is None:
            raise ValueError(f"Expected a split among {sorted(self.files)}. Received: {split!r}")
        file = find_file(Path(path), names, split)
        if file.suffix in (".jsonl", ".json"):
            return self.from_records(read_json_lines(file), file)
        skipped: list[tuple[int, str]] = []
        rows = self._records(read_tabs(file, is_quoted), split, file, skipped)
        return self.from_records(rows, file, skipped)

    def from_records(
        self,
        records: Iterable[tuple[int, Mapping[str, Any]]],
        source: Any,
        skipped: list[tuple[int, str]] | None = None,
    ) -> Examples:
        """Make examples of numbered records: column names and values."""
        skipped = [] if skipped is None else skipped
        rows = []
        for number, record in records:
            texts = tuple(str(_value(record, names, source)) for names in self.texts)
            row_id = str(record.get("index", record.get("idx", record.get("id", len(rows)))))
            rows.append((number, texts, self._label(record, number, source), row_id))
        is_labelled = any(label is not None for _, _, label, _ in rows)
        if is_labelled:
            skipped.extend((n, "no label") for n, _, label, _ in rows if label is None)
            rows = [row for row in rows if row[2] is not None]
        return Examples(
            tuple([row[1][i] for row in rows] for i in range(len(self.texts))),
            [row[2] for row in rows] if is_labelled else None,
            [row[3] for row in rows],
            report_skipped(sorted(skipped), source),
        )

    def from_hub(self, records: Iterable[Mapping[str, Any]]) -> Examples:
        """Make examples of records of the package `datasets`, whose classes are in this order."""
        return self.from_records(enumerate(records), " ".join(self.hub))

    def _records(self, rows, split: str, file: Path, skipped: list) -> Iterator[tuple[int, dict]]:
        """Name the fields of rows by the header; a last column's value is the last field.

        Some rows of SNLI have more fields than the header: as many labels as annotators.
        """
        header = self.headers.get(split)
        for number, fields in rows:
            if header is None:
                header = tuple(fields)
                continue
            if len(fields) < len(header):
                skipped.append((number, f"{len(fields)} of {len(header)} fields"))
                continue
            record = dict(zip(header, fields, strict=False))
            record[header[-1]] = fields[-1]
            yield number, record

    def _label(self, record: Mapping[str, Any], number: int, source: Any) -> Any:
        """The class's name, or a number for a regression, or None."""
        found = [record[name] for name in self.label if name in record]
        value = str(found[0]) if found else "-1"
        value = self.other_names.get(value, value)
        if value in NO_LABEL or value == "None":
            return None
        if not self.labels:
            return float(value)
        if value not in self.labels and value.isdigit() and int(value) < len(self.labels):
            return self.labels[int(value)]
        if value not in self.labels:
            raise ValueError(
                f"Expected a label among {list(self.labels)} in line {number} of '{source}'. "
                f"Received: {value!r}"
            )
        return value

    def score(self, examples: Examples, predicted: Sequence[Any]) -> dict[str, float]:
        """Score predictions: names of classes, or numbers for a regression.

        Raises:
            ValueError: for examples without labels, or a name that is no class.
        """
        return METRICS[self.metric](
            self._numbers(examples.known_labels()), self._numbers(predicted)
        )

    def _numbers(self, values: Sequence[Any]) -> list[float]:
        if not self.labels:
            return [float(value) for value in values]
        unknown = [value for value in values if value not in self.labels]
        if unknown:
            raise ValueError(f"Expected labels among {list(self.labels)}. Received: {unknown[0]!r}")
        return [self.labels.index(value) for value in values]

    def write_submission(self, folder: str | os.PathLike, predicted: Sequence[Any]) -> Path:
        """Write predictions for the test file as the benchmark's server takes them.

        Args:
            folder: where; the file has the name that the server expects.
            predicted: names of classes, or numbers, in the order of the test file.

        Returns:
            The file: a header `index`, `prediction`, and a line for each.
        """
        if not self.submission:
            raise ValueError(f"Expected a benchmark with a server. Received: {self.name}")
        numbers = self._numbers(predicted)
        if not self.labels:
            values = [f"{min(max(number, 0.0), 5.0):.3f}" for number in numbers]
        else:
            values = [str(int(n)) if self.by_number else self.labels[int(n)] for n in numbers]
        rows = ["index\tprediction", *(f"{i}\t{value}" for i, value in enumerate(values)), ""]
        return write_whole(Path(folder) / self.submission, "\n".join(rows))


def write_whole(path: Path, text: str) -> Path:
    """Write a file under a temporary name, then give it its own; make its folder where needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8", newline="")
    return partial.replace(path)


def _value(record: Mapping[str, Any], names: Sequence[str], source: Any) -> Any:
    for name in names:
        if name in record:
            return record[name]
    raise ValueError(
        f"Expected a column {' or '.join(map(repr, names))} in '{source}'. "
        f"Received: {list(record)[:12]}"
    )
