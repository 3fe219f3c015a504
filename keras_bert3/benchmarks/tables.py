"""Rows out of files: values between tabs or commas, or a JSON object a line."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

Row = tuple[int, list[str]]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file; only a line feed ends one, with a return before it or none.

    Python's `splitlines` would also break at characters that stand inside sentences.
    """
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_tabs(path: Path, is_quoted: bool = False) -> Iterator[Row]:
    r"""Yield (line number from 1, fields) of a file with values between tabs.

    GLUE's files quote nothing: a quotation mark is text, whether it has a partner or not.

    Args:
        path: the file.
        is_quoted: for copies written as CSV, where fields that hold quotation marks stand in
            quotation marks, and those in them are doubled.
    """
    if is_quoted:
        yield from _read_csv(path, "\t")
    else:
        yield from ((i, line.split("\t")) for i, line in enumerate(read_lines(path), start=1))


def read_commas(path: Path) -> Iterator[Row]:
    """Yield (line number from 1, fields) of a CSV file."""
    yield from _read_csv(path, ",")


def _read_csv(path: Path, delimiter: str) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        first = 1
        for row in reader:
            yield first, row
            first = reader.line_num + 1


def read_json_lines(path: Path) -> Iterator[tuple[int, dict]]:
    """Yield (line number from 1, object) of a file with a JSON object a line.

    Raises:
        ValueError: for a line that is none, naming it.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"Expected a JSON object in line {number} of '{path}'. Received: {error}"
                ) from error


def find_file(path: Path, names: Sequence[str], split: str) -> Path:
    """Return `path` where it is a file, or the first of `names` in it.

    Raises:
        ValueError: listing what was looked for.
    """
    if path.is_file():
        return path
    for name in names:
        if (path / name).is_file():
            return path / name
    raise ValueError(
        f"Expected a file, or a folder with one of {list(names)} for split {split!r}. "
        f"Received: '{path}'"
    )
