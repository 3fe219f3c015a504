"""Vocabularies: tokens and ids; in files, one token a line, where the id is the line number."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
CONTINUATION = "##"
SPECIAL_TOKENS = (PAD, UNKNOWN, CLS, SEP, MASK)


class TokenTable:
    """Tokens and their ids.

    Args:
        tokens: the tokens in the order of their ids, each once.

    Example: `TokenTable(["a", "b"]).token_to_id("b")` is 1.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._vocabulary = list(tokens)
        self._ids = {token: index for index, token in enumerate(self._vocabulary)}

    def _append(self, tokens: Sequence[str]) -> None:
        """Give the next ids to those tokens that have none."""
        for token in tokens:
            if self._ids.setdefault(token, len(self._vocabulary)) == len(self._vocabulary):
                self._vocabulary.append(token)

    @property
    def vocabulary(self) -> list[str]:
        """The tokens in the order of their ids, as a new list."""
        return list(self._vocabulary)

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens V."""
        return len(self._vocabulary)

    def token_to_id(self, token: str) -> int:
        """Return the id of a token; ValueError where the vocabulary lacks it."""
        if token not in self._ids:
            raise ValueError(f"Expected a token of the vocabulary. Received: {token!r}")
        return self._ids[token]

    def id_to_token(self, index: int) -> str:
        """Return the token of an id; ValueError outside 0 to V - 1."""
        if not 0 <= index < len(self._vocabulary):
            raise ValueError(
                f"Expected an id from 0 to {len(self._vocabulary) - 1}. Received: {index}"
            )
        return self._vocabulary[index]


class Vocabulary(TokenTable):
    """A table with the five special tokens of BERT, wherever they stand.

    Args:
        tokens: the tokens in the order of their ids.

    Raises:
        ValueError: as `checked_vocabulary`.

    Example:
    ```python
    words = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##able"])
    words.mask_id  # 4
    words.is_continuation[6]  # True
    ```
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(checked_vocabulary(tokens))

    @property
    def pad_id(self) -> int:
        """The id of [PAD]."""
        return self._ids[PAD]

    @property
    def unknown_id(self) -> int:
        """The id of [UNK]."""
        return self._ids[UNKNOWN]

    @property
    def cls_id(self) -> int:
        """The id of [CLS]."""
        return self._ids[CLS]

    @property
    def sep_id(self) -> int:
        """The id of [SEP]."""
        return self._ids[SEP]

    @property
    def mask_id(self) -> int:
        """The id of [MASK]."""
        return self._ids[MASK]

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of [PAD], [UNK], [CLS], [SEP] and [MASK], in this order."""
        return tuple(self._ids[token] for token in SPECIAL_TOKENS)

    @functools.cached_property
    def is_continuation(self) -> np.ndarray:
        """For each id whether its token goes on with a word ("##..."): bool [V], read-only."""
        flags = np.array([token.startswith(CONTINUATION) for token in self._vocabulary])
        flags.flags.writeable = False
        return flags


def read_vocabulary(path: str | Path) -> list[str]:
    """Read a vocab.txt: UTF-8, a token a line, whitespace around it is dropped.

    As google-research/bert `tokenization.py` (`load_vocab`) does, an empty line inside the file
    takes an id. Unlike there, a repeated token is refused (by `checked_vocabulary`) instead of
    silently moving the id of the first.

    Args:
        path: the file.

    Returns:
        The tokens; the id of a token is its index.

    Raises:
        ValueError: when there is no such file, or its bytes are not UTF-8.

    Example: `read_vocabulary("vocab.txt")[:1]` is `["[PAD]"]` for the published vocabularies.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"Expected the path of a vocabulary file. Received: {str(path)!r}")
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected UTF-8 text. Received: byte {error.object[error.start]:#04x} "
            f"at offset {error.start} of {path}."
        ) from error
    if lines[-1] == "":
        lines.pop()
    return [line.strip() for line in lines]


def checked_vocabulary(vocabulary: Sequence[str]) -> list[str]:
    """Return the tokens as a list, or raise ValueError for one that no tokenizer can use.

    Args:
        vocabulary: tokens in the order of their ids; [PAD] [UNK] [CLS] [SEP] [MASK] among them.

    Raises:
        ValueError: when it is empty, holds something other than str, a token with whitespace
            around it or a line break in it, a token twice, or lacks a special token.

    Example: `checked_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])[5]` is `"a"`.
    """
    if not vocabulary:
        raise ValueError("Expected a vocabulary with at least one token. Received: none")
    first_ids: dict[str, int] = {}
    for index, token in enumerate(vocabulary):
        if not isinstance(token, str):
            raise ValueError(f"Expected tokens as str. Received: {token!r} (id {index})")
        if token != token.strip() or "\n" in token:
            raise ValueError(
                f"Expected tokens without outer whitespace or line breaks. "
                f"Received: {token!r} (id {index})"
            )
        if first_ids.setdefault(token, index) != index:
            raise ValueError(
                f"Expected each token once. Received: {token!r} twice "
                f"(ids {first_ids[token]} and {index})"
            )
    missing = [token for token in SPECIAL_TOKENS if token not in first_ids]
    if missing:
        raise ValueError(
            f"Expected a vocabulary with {', '.join(SPECIAL_TOKENS)}. "
            f"Received: one without {', '.join(missing)}"
        )
    return list(vocabulary)


def checked_text(text: object) -> str:
    """Return a text that can be written as UTF-8, or raise ValueError."""
    if not isinstance(text, str):
        raise ValueError(f"Expected text as str. Received: {text!r} ({type(text).__name__})")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"Expected text without lone surrogates. Received: {text!r}"
        raise ValueError(message) from error
    return text


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with its line ends as they are, whole or not at all.

    Args:
        path: the file; it is replaced only once the new text is on disk under another name.
        text: the content.

    Example: `write_text(Path("vocab.txt"), "[PAD]")`.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(text.encode("utf-8"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
