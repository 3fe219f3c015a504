"""Questions and the texts that answer them, as windows of tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert3.data.windows import best_windows, window_spans
from keras_bert3.data.words import visible_offsets
from keras_bert3.tasks.window_preprocessor import WindowPreprocessor

SPECIAL = 3
"""[CLS] and two [SEP]."""


class Question(NamedTuple):
    """A tokenised question with its text.

    Args:
        question_ids: at most `max_query_length` ids.
        token_ids: int32 `[t]`, of the text.
        offsets: int `[t, 2]`, the characters of the text that each token stands for.
    """

    question_ids: list[int]
    token_ids: np.ndarray
    offsets: np.ndarray


class QuestionWindow(NamedTuple):
    """A question and a part of its text that fit in a row.

    Args:
        question: number of the question.
        question_ids: its ids.
        token_ids: int32 `[n]`, of the part.
        first: place of the part's first token in the text.
        is_best: bool `[n]`, whether the token has no more context in another window.
    """

    question: int
    question_ids: list[int]
    token_ids: np.ndarray
    first: int
    is_best: np.ndarray

    @property
    def offset(self) -> int:
        """Place of the part's first token in the row."""
        return len(self.question_ids) + 2


class ExtractiveQAPreprocessor(WindowPreprocessor):
    """[CLS] question [SEP] part of the text [SEP], as often as the text needs.

    Args:
        tokenizer: with `encode_with_offsets`, `cls_id`, `sep_id` and `pad_id`.
        sequence_length: the longest row (384); shorter ones are padded to 32, 64, 128 ... as the
            longest of their batch needs.
        stride: tokens from the beginning of one part to that of the next (128); half the room when
            None and that is less.
        max_query_length: tokens of a question, which is cut off beyond (64).

    All three defaults are those of google-research/bert `run_squad.py`.

    Raises:
        ValueError: where a question could leave no room for the text, or parts would not touch.

    Example:
        >>> preprocessor = ExtractiveQAPreprocessor(tokenizer)
        >>> questions = preprocessor.encode(["Where?"], ["It stands in Denver."])
        >>> preprocessor.pack_windows(preprocessor.windows(questions))["token_ids"].shape
        (1, 32)
    """

    def __init__(
        self,
        tokenizer,
        sequence_length: int = 384,
        stride: int | None = None,
        max_query_length: int = 64,
    ):
        super().__init__(tokenizer, sequence_length)
        room = sequence_length - max_query_length - SPECIAL
        self.stride = min(128, max(1, room // 2)) if stride is None else stride
        self.max_query_length = max_query_length
        if max_query_length < 1 or not 1 <= self.stride <= room:
            raise ValueError(
                "Expected max_query_length + stride + 3 special tokens to fit in sequence_length, "
                "so that windows leave no token out. Received: "
                f"sequence_length={sequence_length}, max_query_length={max_query_length}, "
                f"stride={stride}"
            )

    def encode(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Question]:
        """Tokenise questions and texts; a text that returns is tokenised once."""
        known: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        encoded = []
        for ids, context in zip(self.tokenizer(list(questions)), contexts, strict=True):
            if context not in known:
                token_ids, offsets = self.tokenizer.encode_with_offsets(context)
                visible = visible_offsets(context, offsets)
                known[context] = np.array(token_ids, "int32"), visible
            encoded.append(Question(ids[: self.max_query_length], *known[context]))
        return encoded

    def windows(self, questions: Sequence[Question]) -> list[QuestionWindow]:
        """Cut texts into overlapping parts."""
        windows = []
        for number, question in enumerate(questions):
            length = len(question.token_ids)
            room = self.longest_row - SPECIAL - len(question.question_ids)
            spans = window_spans(length, room, self.stride)
            best = best_windows(spans, length)
            for place, (first, end) in enumerate(spans):
                part = question.token_ids[first:end], first, best[first:end] == place
                windows.append(QuestionWindow(number, question.question_ids, *part))
        return windows

    def pack_windows(
        self, windows: Sequence[QuestionWindow], length: int | None = None
    ) -> dict[str, np.ndarray]:
        """Frame and pad windows; see `pack_rows`."""
        first = [window.question_ids for window in windows]
        return self.pack_rows(first, [window.token_ids for window in windows], length)

    def get_config(self) -> dict:
        """The constructor's arguments, less the tokenizer."""
        own = {"stride": self.stride, "max_query_length": self.max_query_length}
        return {**super().get_config(), **own}


def token_span(question: Question, span: tuple[int, int]) -> tuple[int, int] | None:
    """Return the first and last token that overlap a span of characters, or None."""
    start, end = span
    inside = (question.offsets[:, 0] < end) & (question.offsets[:, 1] > start)
    places = np.flatnonzero(inside)
    return (int(places[0]), int(places[-1])) if len(places) else None


def targets(
    windows: Sequence[QuestionWindow], tokens: Sequence[tuple[int, int] | None]
) -> dict[str, np.ndarray]:
    """Return where the answers begin and end in rows.

    A row that does not hold the whole answer says so by [CLS]: 0 and 0 (Devlin et al. 2018,
    section 4.3; google-research/bert `run_squad.py`).

    Args:
        windows: one a row.
        tokens: for each question the answer's first and last token; None for no answer.

    Returns:
        `start` and `end`, int32 `[b]`.
    """
    places = np.zeros((2, len(windows)), "int32")
    for row, window in enumerate(windows):
        answer = tokens[window.question]
        end = window.first + len(window.token_ids)
        if answer is not None and window.first <= answer[0] and answer[1] < end:
            shift = window.offset - window.first
            places[:, row] = answer[0] + shift, answer[1] + shift
    return {"start": places[0], "end": places[1]}
