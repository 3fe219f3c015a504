"""From the logits of windows to answers in the words of the text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert3.tasks.question_windows import Question, QuestionWindow

MOST_TOKENS = 30
"""Tokens in an answer (google-research/bert `run_squad.py`: `max_answer_length`)."""


class Answer(NamedTuple):
    """An answer to a question.

    Args:
        text: cut out of the text as it stands there: `context[start:end]`; "" for no answer.
        start: its first character.
        end: the character after its last.
        score: its share of the probability, among the candidates.
        null_margin: how much likelier no answer is than the best one: the difference of their
            summed logits. SQuAD 2.0's threshold is on this.
    """

    text: str
    start: int
    end: int
    score: float
    null_margin: float


class Candidates(NamedTuple):
    """What the windows of one question say together.

    Args:
        spans: (start, end) in characters, the likeliest first.
        scores: start plus end logit of each.
        null_score: of no answer: the smallest sum of the two logits at [CLS] in any window, since
            an answer in one window is an answer.
    """

    spans: list[tuple[int, int]]
    scores: list[float]
    null_score: float


def best_spans(
    start: np.ndarray,
    end: np.ndarray,
    may_start: np.ndarray,
    count: int,
    most_tokens: int = MOST_TOKENS,
) -> list[tuple[float, int, int]]:
    """Find the likeliest spans of at most m tokens.

        score(i, j) = start_i + end_j,  i <= j < i + m

    Every pair is looked at, not only those of the likeliest starts and ends, so that there always
    is an answer, and the best one is found.

    Args:
        start: logits `[n]`.
        end: logits `[n]`.
        may_start: bool `[n]`.
        count: how many to return.
        most_tokens: m.

    Returns:
        (score, first, last), the likeliest first.

    Example: `best_spans(np.array([0., 3]), np.array([1., 2]), np.array([True, True]), 1)` is
    `[(5.0, 1, 1)]`.
    """
    length = len(start)
    widths = min(most_tokens, length)
    scores = np.full((widths, length), -np.inf)
    for width in range(widths):
        scores[width, : length - width] = start[: length - width] + end[width:]
    scores[:, ~may_start] = -np.inf
    flat = scores.ravel()
    count = min(count, int(np.isfinite(flat).sum()))
    if not count:
        return []
    best = np.argpartition(-flat, count - 1)[:count]
    best = best[np.argsort(-flat[best], kind="stable")]
    return [(float(flat[i]), int(i % length), int(i % length + i // length)) for i in best]


def window_candidates(
    window: QuestionWindow,
    question: Question,
    logits: dict[str, np.ndarray],
    count: int,
    most_tokens: int = MOST_TOKENS,
) -> Candidates:
    """Read one row: an answer may only start where the row shows most of its context."""
    part = slice(window.offset, window.offset + len(window.token_ids))
    start, end = (np.asarray(logits[name], "float64") for name in ("start", "end"))
    offsets = question.offsets[window.first : window.first + len(window.token_ids)]
    is_visible = offsets[:, 0] < offsets[:, 1]
    ends = np.where(is_visible, end[part], -np.inf)
    found = best_spans(start[part], ends, window.is_best & is_visible, count, most_tokens)
    spans = [(int(offsets[first, 0]), int(offsets[last, 1])) for _, first, last in found]
    return Candidates(spans, [score for score, _, _ in found], float(start[0] + end[0]))


def merge(windows: Sequence[Candidates], count: int) -> Candidates:
    """Join what all windows of a question say: its best spans, and the least null score."""
    best: dict[tuple[int, int], float] = {}
    for window in windows:
        for span, score in zip(window.spans, window.scores, strict=True):
            best[span] = max(score, best.get(span, -np.inf))
    spans = sorted(best, key=lambda span: -best[span])[:count]
    null_score = min(window.null_score for window in windows)
    return Candidates(spans, [best[span] for span in spans], null_score)


def answers_of(
    context: str, found: Candidates, null_threshold: float | None = None
) -> list[Answer]:
    """Turn candidates into answers, that which is given first, no answer among them.

    Args:
        context: the text.
        found: what the windows say.
        null_threshold: no answer comes first where its margin is above this (SQuAD 2.0); where
            None, every question has an answer (SQuAD 1.1), unless its text is empty.

    Returns:
        The answers with their shares of the probability, softmax of the summed logits. Without a
        threshold no answer is not among them.
    """
    margin = found.null_score - (found.scores[0] if found.scores else -np.inf)
    has_null = null_threshold is not None or not found.spans
    scores = [*found.scores, found.null_score] if has_null else list(found.scores)
    spans = [*found.spans, (0, 0)] if has_null else list(found.spans)
    powers = np.exp(np.array(scores) - max(scores))
    shares = powers / powers.sum()
    answers = [
        Answer(context[start:end], start, end, float(share), float(margin))
        for (start, end), share in zip(spans, shares, strict=True)
    ]
    if null_threshold is None or margin <= null_threshold:
        return sorted(answers, key=lambda answer: (not answer.text, -answer.score))
    return [answers[-1], *answers[:-1]]
