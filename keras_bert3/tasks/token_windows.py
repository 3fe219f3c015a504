"""Texts or lists of words as windows of tokens, for labels on words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert3.data.windows import best_windows, window_spans
from keras_bert3.data.words import join_words, tokenize_words, word_spans
from keras_bert3.tasks.window_preprocessor import WindowPreprocessor


class Document(NamedTuple):
    """A tokenised text.

    Args:
        token_ids: int32 `[tokens]`, without special tokens.
        first_tokens: int `[words]`, the place of each word's first token.
        spans: (start, end) of each word, in characters of the text.
    """

    token_ids: np.ndarray
    first_tokens: np.ndarray
    spans: list[tuple[int, int]]


class TokenWindow(NamedTuple):
    """A part of a document that fits in a row.

    Args:
        document: which it is a part of.
        token_ids: int32 `[n]`.
        words: int `[n]`, at the first token of each word that has its best window here, the number
            of the word; -1 everywhere else.
    """

    document: int
    token_ids: np.ndarray
    words: np.ndarray


class TokenClassifierPreprocessor(WindowPreprocessor):
    """Words with their first tokens marked, in windows where they are many.

    Every word belongs to exactly one window, that in which its first token has the most context
    (see `best_windows`): it is trained on once, counted once and predicted once, however long the
    text is.

    Args:
        tokenizer: with `encode_with_offsets`, `unknown_id`, `cls_id`, `sep_id` and `pad_id`.
        sequence_length: the longest row, special tokens included; shorter ones are padded to 32,
            64, 128 ... as the longest of their batch needs (google-research/bert
            `run_classifier.py`: 128).
        stride: tokens from the beginning of one window to that of the next; half a window when
            None.

    Raises:
        ValueError: for a row without room, or a stride that would skip tokens.

    Example:
        >>> preprocessor = TokenClassifierPreprocessor(tokenizer, sequence_length=128)
        >>> documents = [preprocessor.encode(["Jim", "Henson", "was", "here"])]
        >>> preprocessor.pack_windows(preprocessor.windows(documents))["token_ids"].shape
        (1, 32)
    """

    def __init__(self, tokenizer, sequence_length: int = 128, stride: int | None = None):
        super().__init__(tokenizer, sequence_length)
        self.room = sequence_length - 2
        self.stride = max(1, self.room // 2) if stride is None else stride
        if not 1 <= self.stride <= self.room:
            raise ValueError(
                "Expected rows with room for a token beside [CLS] and [SEP], and a stride within "
                f"that room. Received: sequence_length={sequence_length}, stride={stride}"
            )

    def encode(self, text: str | Sequence[str]) -> Document:
        """Tokenise a text, whose words `word_spans` finds, or a list of words."""
        if isinstance(text, str):
            joined, spans = text, word_spans(text, self._whole(text))
        else:
            joined, spans = join_words(text)
        token_ids, first_tokens = tokenize_words(self.tokenizer, joined, spans)
        return Document(token_ids, first_tokens, spans)

    def _whole(self, text: str) -> list[tuple[int, int]]:
        """Where tokens stand that a tokenizer with added ones never cuts."""
        if not hasattr(self.tokenizer, "whole_tokens"):
            return []
        return [span for _, span in self.tokenizer.whole_tokens(text)]

    def windows(self, documents: Sequence[Document]) -> list[TokenWindow]:
        """Cut documents so that every word is in one window's care."""
        windows = []
        for number, document in enumerate(documents):
            length = len(document.token_ids)
            spans = window_spans(length, self.room, self.stride)
            word_at = np.full(length, -1)
            word_at[document.first_tokens] = np.arange(len(document.first_tokens))
            best = best_windows(spans, length)
            for window, (first, end) in enumerate(spans):
                words = np.where(best[first:end] == window, word_at[first:end], -1)
                windows.append(TokenWindow(number, document.token_ids[first:end], words))
        return windows

    def pack_windows(self, windows: Sequence[TokenWindow]) -> dict[str, np.ndarray]:
        """Frame and pad windows; see `pack_rows`."""
        return self.pack_rows([window.token_ids for window in windows])

    def get_config(self) -> dict:
        """The constructor's arguments, less the tokenizer."""
        return {**super().get_config(), "stride": self.stride}


def words_in_rows(windows: Sequence[TokenWindow], length: int) -> np.ndarray:
    """Lay the windows' `words` out as their tokens lie in rows: int `[b, length]`."""
    rows = np.full((len(windows), length), -1)
    for row, window in zip(rows, windows, strict=True):
        row[1 : 1 + len(window.words)] = window.words
    return rows
