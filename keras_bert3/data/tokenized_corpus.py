"""A tokenised corpus in a folder: flat token ids, and where sentences and documents begin.

The folder holds

- `tokens.bin`: all ids, one after the other, without special tokens: little-endian uint16 for a
  vocabulary of at most 65,536 tokens, else uint32;
- `sentences.npy`: int64 [S + 1], first token of each sentence, then the number of tokens;
- `documents.npy`: int64 [D + 1], first sentence of each document, then the number of sentences;
- `manifest.json`: counts, number type, a hash of the vocabulary, size and SHA-256 of each file.

It is written as the documents come and read through memory maps, so neither needs memory for the
corpus.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert3.data.array_files import ArrayWriter, whole_path
from keras_bert3.data.tokenizer_protocols import CorpusTokenizer
from keras_bert3.objectives.counter_random import random_permutation

FORMAT_VERSION = 1
_ARRAY_FILES = ("tokens.bin", "sentences.npy", "documents.npy")
_ENCODED_TOGETHER = 4096
_SPLIT_STREAM = 0


def write_tokenized_corpus(
    folder: str | Path, documents: Iterable[Sequence[str]], tokenizer: CorpusTokenizer
) -> "TokenizedCorpus":
    """Tokenise documents into a new folder.

    Sentences without a token and documents without a sentence are dropped. The folder appears under
    its name when all is written; after an error it does not exist.

    Args:
        folder: the folder to make.
        documents: documents as lists of sentences; each is asked for when its turn comes.
        tokenizer: turns a list of sentences into lists of ids, and names its `vocabulary`.

    Returns:
        The opened corpus.

    Raises:
        ValueError: the folder exists, an id is outside the vocabulary, or no token was written.

    Example:
        >>> corpus = write_tokenized_corpus("corpus", read_documents("books/"), tokenizer)
        ... # doctest: +SKIP
    """
    vocabulary = list(tokenizer.vocabulary)
    dtype = np.dtype("<u2" if len(vocabulary) <= 2**16 else "<u4")
    with whole_path(folder) as temporary:
        temporary.mkdir()
        counts = _write_arrays(temporary, documents, tokenizer, dtype, len(vocabulary))
        manifest = {
            "format": FORMAT_VERSION,
            "dtype": dtype.str,
            "vocabulary_size": len(vocabulary),
            "vocabulary_sha256": vocabulary_hash(vocabulary),
            **counts,
            "files": {name: _describe(temporary / name) for name in _ARRAY_FILES},
        }
        text = json.dumps(manifest, indent=2) + "\n"
        (temporary / "manifest.json").write_text(text, encoding="utf-8")
    return TokenizedCorpus.open(folder)


def vocabulary_hash(vocabulary: Iterable[str]) -> str:
    """Give the SHA-256 of the tokens in order, to tell vocabularies apart."""
    digest = hashlib.sha256()
    for token in vocabulary:
        digest.update(token.encode("utf-8") + b"\n")
    return digest.hexdigest()


def _write_arrays(
    folder: Path,
    documents: Iterable[Sequence[str]],
    tokenizer: CorpusTokenizer,
    dtype: np.dtype,
    vocabulary_size: int,
) -> dict[str, int]:
    num_tokens = num_sentences = 0
    last_number = -1
    with (
        open(folder / "tokens.bin", "wb") as tokens,
        ArrayWriter(folder / "sentences.npy", np.int64) as sentence_offsets,
        ArrayWriter(folder / "documents.npy", np.int64) as document_offsets,
    ):
        sentence_offsets.append([0])
        for numbers, encoded in _encode(documents, tokenizer):
            ids = np.concatenate(encoded)
            _check_ids(ids, vocabulary_size)
            tokens.write(ids.astype(dtype).tobytes())
            sentence_offsets.append(num_tokens + np.cumsum([len(ids) for ids in encoded]))
            document_begins = np.flatnonzero(np.diff(numbers, prepend=last_number))
            document_offsets.append(num_sentences + document_begins)
            num_tokens += len(ids)
            num_sentences += len(encoded)
            last_number = numbers[-1]
        document_offsets.append([num_sentences])
        num_documents = document_offsets.num_rows - 1
    if not num_tokens:
        raise ValueError("Expected documents that hold a token. Received: none.")
    return {"tokens": num_tokens, "sentences": num_sentences, "documents": num_documents}


def _encode(
    documents: Iterable[Sequence[str]], tokenizer: CorpusTokenizer
) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Yield the ids of some thousand sentences at a time, with the number of their document."""
    numbered = (
        (number, sentence) for number, document in enumerate(documents) for sentence in document
    )
    while batch := list(itertools.islice(numbered, _ENCODED_TOGETHER)):
        encoded = tokenizer([sentence for _, sentence in batch])
        kept = [(number, ids) for (number, _), ids in zip(batch, encoded, strict=True) if len(ids)]
        if kept:
            yield [number for number, _ in kept], [ids for _, ids in kept]


def _check_ids(ids: np.ndarray, vocabulary_size: int) -> None:
    if ids.min() < 0 or ids.max() >= vocabulary_size:
        raise ValueError(
            f"Expected ids from 0 to {vocabulary_size - 1}. "
            f"Received: ids from {ids.min()} to {ids.max()}."
        )


def _describe(path: Path) -> dict[str, Any]:
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus folder, opened through memory maps.

    Attributes:
        tokens: uint16 or uint32 [N], all token ids.
        sentence_offsets: int64 [S + 1], first token of each sentence, then N.
        document_offsets: int64 [D + 1], first sentence of each document, then S.
        vocabulary_size: number of tokens of the vocabulary.
        vocabulary_sha256: its `vocabulary_hash`.
    """

    tokens: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray
    vocabulary_size: int
    vocabulary_sha256: str

    @classmethod
    def open(cls, folder: str | Path, verify_checksums: bool = False) -> "TokenizedCorpus":
        """Open a folder made by `write_tokenized_corpus`.

        Args:
            folder: the folder.
            verify_checksums: read every byte once and compare; sizes are always compared.

        Raises:
            ValueError: the manifest is missing or of another format, or a file is missing,
                truncated or (with `verify_checksums`) changed.
        """
        folder = Path(folder)
        manifest = _read_manifest(folder)
        for name in _ARRAY_FILES:
            _check_file(folder / name, manifest["files"][name], verify_checksums)
        return cls(
            np.asarray(np.memmap(folder / "tokens.bin", np.dtype(manifest["dtype"]), mode="r")),
            np.asarray(np.load(folder / "sentences.npy", mmap_mode="r")),
            np.asarray(np.load(folder / "documents.npy", mmap_mode="r")),
            manifest["vocabulary_size"],
            manifest["vocabulary_sha256"],
        )

    @property
    def num_documents(self) -> int:
        """Number of documents D."""
        return len(self.document_offsets) - 1

    @property
    def num_sentences(self) -> int:
        """Number of sentences S."""
        return len(self.sentence_offsets) - 1

    def split(self, held_out: float = 0.01, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Divide the documents at random into some to train on and some held out.

        Args:
            held_out: share of the documents to hold out; at least one, and never all.
            seed: any integer; the division depends on it and on the number of documents alone.

        Returns:
            Numbers of the documents to train on and of those held out, ascending int64 arrays.

        Raises:
            ValueError: there is one document, or the share is not between 0 and 1.
        """
        if self.num_documents < 2 or not 0 < held_out < 1:
            raise ValueError(
                "Expected at least 2 documents and 0 < held_out < 1. "
                f"Received: {self.num_documents} documents and held_out={held_out}."
            )
        count = min(max(1, round(self.num_documents * held_out)), self.num_documents - 1)
        order = random_permutation(self.num_documents, seed, _SPLIT_STREAM)
        return np.sort(order[count:]), np.sort(order[:count])


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    if not path.is_file():
        raise ValueError(f"Expected a tokenised corpus. Received: {folder}, without manifest.json.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"Expected a manifest in JSON. Received: {error} in {path}.") from error
    if manifest.get("format") != FORMAT_VERSION:
        raise ValueError(
            f"Expected a corpus of format {FORMAT_VERSION}. "
            f"Received: format {manifest.get('format')} in {path}."
        )
    return manifest


def _check_file(path: Path, described: dict[str, Any], verify_checksum: bool) -> None:
    if not path.is_file():
        raise ValueError(f"Expected the file {path}. Received: a corpus without it.")
    size = path.stat().st_size
    if size != described["bytes"]:
        raise ValueError(f"Expected {path} of {described['bytes']} bytes. Received: {size} bytes.")
    if verify_checksum and _describe(path) != described:
        raise ValueError(
            f"Expected {path} as it was written, by its SHA-256. Received: changed bytes."
        )
