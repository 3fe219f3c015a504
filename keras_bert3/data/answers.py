"""Answers as data sets give them, as stretches of their texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class LocatedAnswers(NamedTuple):
    """Where answers stand.

    Args:
        spans: (start, end) in characters of the text, the end excluded; None for a question without
            an answer, and for a dropped one.
        moved: numbers of the answers that stand elsewhere than their data set says.
        dropped: numbers of those that stand nowhere in their text.
    """

    spans: list[tuple[int, int] | None]
    moved: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


def locate_answers(contexts: Sequence[str], answers: Sequence[Any]) -> LocatedAnswers:
    """Find the first answer to each question in its text.

    Args:
        contexts: the texts.
        answers: for each a pair (start, end) of characters; or a dict of lists `text` and
            `answer_start`, as in SQuAD's records; or None or empty lists for no answer.

    Raises:
        ValueError: for another number of answers than texts, or a pair outside its text.

    Example: `locate_answers(["In Paris."], [{"text": ["paris"], "answer_start": [3]}]).spans` is
    `[(3, 8)]`.
    """
    if len(contexts) != len(answers):
        raise ValueError(f"Expected {len(contexts)} answers. Received: {len(answers)}")
    spans, moved, dropped = [], [], []
    for number, (context, answer) in enumerate(zip(contexts, answers, strict=True)):
        if _is_nothing(answer):
            spans.append(None)
        elif isinstance(answer, Mapping):
            text, said = answer["text"][0], int(answer["answer_start"][0])
            span = locate_answer(context, text, said)
            spans.append(span)
            if span is None:
                dropped.append(number)
            elif span[0] != said + _leading(text):
                moved.append(number)
        else:
            spans.append(_checked(answer, context, number))
    return LocatedAnswers(spans, tuple(moved), tuple(dropped))


def locate_answer(context: str, text: str, start: int) -> tuple[int, int] | None:
    """Find an answer at `start`, or else as near to it as it occurs, or return None.

    Space around the answer is no part of it. Case may differ, since some data sets fold their
    answers and not their texts.

    Example: `locate_answer("took 7.5 days", " 7.5 days", 4)` is `(5, 13)`.
    """
    start, text = start + _leading(text), text.strip()
    if not text:
        return None
    end = start + len(text)
    if start >= 0 and context[start:end].casefold() == text.casefold():
        return start, end
    for haystack, needle in ((context, text), (context.lower(), text.lower())):
        places = _occurrences(haystack, needle) if len(haystack) == len(context) else []
        if places:
            nearest = min(places, key=lambda place: abs(place - start))
            return nearest, nearest + len(text)
    return None


def _occurrences(haystack: str, needle: str) -> list[int]:
    places, place = [], haystack.find(needle)
    while place >= 0:
        places.append(place)
        place = haystack.find(needle, place + 1)
    return places


def _leading(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_nothing(answer) -> bool:
    return answer is None or (isinstance(answer, Mapping) and not len(answer["text"]))


def _checked(answer, context: str, number: int) -> tuple[int, int]:
    """A pair of characters within the text."""
    start, end = answer if isinstance(answer, tuple | list) and len(answer) == 2 else (-1, -1)
    if not 0 <= start < end <= len(context):
        raise ValueError(
            f"Expected answer {number} as (start, end) within its text of {len(context)} "
            f"characters, as a dict of `text` and `answer_start`, or None. Received: {answer!r}"
        )
    return int(start), int(end)
