"""Text files to documents: lists of sentences, one document in memory at a time.

Three formats are read, plain or gzipped (`.gz`), in UTF-8 with or without a byte-order mark:

- `"sentences"`: the format of google-research/bert: one sentence a line, a blank line between
  documents.
- `"paragraphs"`: one paragraph a line, a blank line between documents; split into sentences.
- `"jsonl"`: one JSON object a line, each a document whose text is in a named field; its lines are
  split into sentences.
"""

import glob
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from keras_bert3.data.sentences import sentence_splitter

DataFormat = Literal["paragraphs", "sentences", "jsonl"]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_documents(
    paths: str | Path | Iterable[str | Path],
    data_format: DataFormat = "paragraphs",
    text_field: str = "text",
    language: str = "en",
) -> Iterator[list[str]]:
    r"""Stream the documents of text files.

    A document ends with its file. Settings and paths are checked at once, the contents while
    reading.

    Args:
        paths: a file, a folder (all its files, in every depth, but hidden ones), a glob pattern, or
            several of these. Each is read in sorted order.
        data_format: `"paragraphs"`, `"sentences"` or `"jsonl"`, see above.
        text_field: the field with the text, for `"jsonl"`.
        language: ISO 639-1 code for splitting sentences; `"sentences"` does not use it.

    Returns:
        An iterator over documents, each a list of sentences that are not empty.

    Raises:
        ValueError: the format is unknown, a path matches nothing, a file has no text, bytes are not
            UTF-8 (with the offset of the first one), a `.gz` file is broken, a line is not a JSON
            object with that field.
        ImportError: the sentence splitter is not installed, see `sentence_splitter`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "corpus.txt"
        >>> _ = path.write_text("One. Two.\nThree.\n\nFour.\n")
        >>> list(read_documents(path))
        [['One.', 'Two.', 'Three.'], ['Four.']]
    """
    if data_format not in ("paragraphs", "sentences", "jsonl"):
        raise ValueError(
            f"Expected data_format 'paragraphs', 'sentences' or 'jsonl'. Received: {data_format!r}."
        )
    split = _strip_line if data_format == "sentences" else sentence_splitter(language)
    files = find_files(paths)
    for file in files:
        if file.stat().st_size == 0:
            raise ValueError(f"Expected files with text. Received: {file}, which is empty.")
    return _read_files(files, data_format, text_field, split)


def find_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files that paths, folders and glob patterns name, each once.

    Raises:
        ValueError: one of the paths matches no file, or there is no path.
    """
    files: dict[Path, None] = {}
    for path in [paths] if isinstance(paths, str | Path) else paths:
        found = _match(Path(path)) if str(path) else []  # Path("") is the current folder
        if not found:
            raise ValueError(
                f"Expected a file, a folder with files or a glob. Received: {str(path)!r}."
            )
        files.update(dict.fromkeys(found))
    if not files:
        raise ValueError("Expected at least one path. Received: none.")
    return list(files)


def _match(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        inside = ((file, file.relative_to(path).parts) for file in sorted(path.rglob("*")))
        return [
            file
            for file, parts in inside
            if file.is_file() and not any(part.startswith(".") for part in parts)
        ]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    return [match for match in matches if match.is_file()]


def _read_files(
    files: list[Path], data_format: str, text_field: str, split: Callable[[str], list[str]]
) -> Iterator[list[str]]:
    for file in files:
        lines = _read_lines(file)
        if data_format == "jsonl":
            documents = _json_documents(file, lines, text_field, split)
        else:
            documents = _documents_between_blank_lines(lines, split)
        empty = True
        for document in documents:
            empty = False
            yield document
        if empty:
            raise ValueError(f"Expected files with text. Received: {file}, which holds none.")


def _read_lines(file: Path) -> Iterator[str]:
    try:
        yield from _decoded_lines(file)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"Expected a whole gzip file. Received: {file} ({error}).") from error


def _decoded_lines(file: Path) -> Iterator[str]:
    offset = 0
    with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as stream:
        for line in stream:
            content = line.removeprefix(_BYTE_ORDER_MARK) if offset == 0 else line
            try:
                yield content.decode("utf-8")
            except UnicodeDecodeError as error:
                place = offset + len(line) - len(content) + error.start
                raise ValueError(
                    f"Expected UTF-8 text. Received: byte {content[error.start]:#04x} "
                    f"at offset {place} of {file}."
                ) from error
            offset += len(line)


def _documents_between_blank_lines(
    lines: Iterable[str], split: Callable[[str], list[str]]
) -> Iterator[list[str]]:
    document: list[str] = []
    for line in lines:
        if line.strip():
            document += split(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def _json_documents(
    file: Path, lines: Iterable[str], text_field: str, split: Callable[[str], list[str]]
) -> Iterator[list[str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        text = _json_text(line, text_field, f"{file}, line {number}")
        document = [sentence for part in text.splitlines() for sentence in split(part)]
        if document:
            yield document


def _json_text(line: str, text_field: str, place: str) -> str:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Expected one JSON object a line. Received: {error.msg} at column {error.pos + 1} "
            f"of {place}."
        ) from error
    if not isinstance(record, dict):
        kind = type(record).__name__
        raise ValueError(f"Expected one JSON object a line. Received: a {kind} in {place}.")
    text = record.get(text_field)
    if not isinstance(text, str):
        fields = ", ".join(f"{name} ({type(record[name]).__name__})" for name in sorted(record))
        raise ValueError(
            f"Expected text in the field {text_field!r}. "
            f"Received: {fields or 'no field'} in {place}."
        )
    if _LONE_SURROGATE.search(text):
        raise ValueError(f"Expected text without lone surrogates. Received: one in {place}.")
    return text


def _strip_line(line: str) -> list[str]:
    sentence = line.strip()
    return [sentence] if sentence else []
