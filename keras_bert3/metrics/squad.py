"""Exact match and F1 of answers, as the official scripts of SQuAD 1.1 and 2.0 count them.

Rajpurkar et al. 2016, section 6.1, and 2018, section 4. Answers are compared as words in lower
case, without punctuation and without "a", "an" and "the"; of several gold answers the most like
one counts.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

Gold = Mapping[str, Sequence[str]]


def normalise(text: str) -> str:
    """Reduce an answer to the words that count.

    Example: `normalise("The  Denver Broncos!")` is `"denver broncos"`.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(gold: str, predicted: str) -> float:
    """1.0 where both answers have the same words in the same order, else 0.0."""
    return float(normalise(gold) == normalise(predicted))


def f1(gold: str, predicted: str) -> float:
    """Harmonic mean of precision and recall of words; 0 where none is shared."""
    wanted, received = normalise(gold).split(), normalise(predicted).split()
    shared = (Counter(wanted) & Counter(received)).total()
    return 2 * shared / (len(wanted) + len(received)) if shared else 0.0


def f1_or_nothing(gold: str, predicted: str) -> float:
    """As `f1`, but no answer is right where there is none: SQuAD 2.0's."""
    if not normalise(gold).split() or not normalise(predicted).split():
        return exact_match(gold, predicted)
    return f1(gold, predicted)


def squad1_scores(gold: Gold, predicted: Mapping[str, str]) -> dict[str, float]:
    """Score answers to questions that all have one; a question without a prediction counts as 0.

    Args:
        gold: for each question's id its gold answers.
        predicted: for each id an answer.

    Returns:
        `exact` and `f1`, in percent, and `total`, the number of questions.

    Example: `squad1_scores({"a": ["the cat"]}, {"a": "cat"})["exact"]` is `100.0`.
    """
    rows = [
        [_best(score, gold[key], predicted[key]) if key in predicted else 0.0 for key in gold]
        for score in (exact_match, f1)
    ]
    return {"exact": _percent(rows[0]), "f1": _percent(rows[1]), "total": len(gold)}


def squad2_scores(
    gold: Gold,
    predicted: Mapping[str, str],
    null_margins: Mapping[str, float] | None = None,
    null_threshold: float = 0.0,
) -> dict[str, float]:
    """Score answers to questions of which some have none.

    Args:
        gold: for each question's id its gold answers, none for a question without answer.
        predicted: for each id an answer. With `null_margins` it is the best one there is, even
            where it should not be given; without, "" says that there is none.
        null_margins: for each id how much likelier no answer is, such as `Answer.null_margin`.
        null_threshold: "" is given in the place of answers with a larger margin.

    Returns:
        In percent `exact` and `f1`; `total`; where there are such questions, the same for those
        with an answer (`has_answer_exact` ...) and without (`no_answer_exact` ...); and, with
        `null_margins`, what `best_thresholds` returns.

    Raises:
        ValueError: for a question without a prediction.
    """
    scores = {
        "exact": _raw_scores(exact_match, gold, predicted),
        "f1": _raw_scores(f1_or_nothing, gold, predicted),
    }
    has_answer = {key: _has_answer(gold[key]) for key in gold}
    result: dict[str, float] = {"total": len(gold)}
    for name, by_key in scores.items():
        if null_margins is not None:
            by_key = {
                key: float(not has_answer[key]) if null_margins[key] > null_threshold else value
                for key, value in by_key.items()
            }
        result[name] = _percent(list(by_key.values()))
        for prefix, wanted in (("has_answer", True), ("no_answer", False)):
            part = [value for key, value in by_key.items() if has_answer[key] is wanted]
            if part:
                result |= {f"{prefix}_{name}": _percent(part), f"{prefix}_total": len(part)}
    if null_margins is not None:
        result |= best_thresholds(gold, predicted, null_margins)
    return result


def best_thresholds(
    gold: Gold, predicted: Mapping[str, str], null_margins: Mapping[str, float]
) -> dict[str, float]:
    """Find the margins above which it is best to say that there is no answer.

    Questions are taken in the order of their margins. Nothing is answered at first; each question
    answered more gains its score where it has an answer, and loses 1 where it has none (but not if
    its prediction is "" already).

    Args:
        gold: as of `squad2_scores`.
        predicted: the best answer to each question, even where it should not be given.
        null_margins: as of `squad2_scores`. Scores that do not come from the model, such as 0 for
            every question, make every threshold meaningless.

    Returns:
        `best_exact` and `best_f1`, in percent, and `best_exact_threshold` and
        `best_f1_threshold`, the margins with which they are reached; 0.0 where nothing should be
        answered.

    Raises:
        ValueError: for a question without a prediction or a margin.
    """
    missing = [key for key in gold if key not in null_margins]
    if missing:
        raise ValueError(
            f"Expected a null margin for every question. Received: none for {missing[0]!r}"
        )
    result = {}
    for name, score in (("exact", exact_match), ("f1", f1_or_nothing)):
        raw = _raw_scores(score, gold, predicted)
        current = best = float(sum(not _has_answer(gold[key]) for key in gold))
        threshold = 0.0
        for key in sorted(gold, key=lambda key: null_margins[key]):
            if _has_answer(gold[key]):
                current += raw[key]
            elif predicted[key]:
                current -= 1
            if current > best:
                best, threshold = current, null_margins[key]
        result[f"best_{name}"] = 100.0 * best / len(gold)
        result[f"best_{name}_threshold"] = float(threshold)
    return result


def _has_answer(answers: Sequence[str]) -> bool:
    return bool(len(answers))


def _best(score: Callable[[str, str], float], gold: Sequence[str], predicted: str) -> float:
    return max(score(answer, predicted) for answer in gold)


def _raw_scores(score, gold: Gold, predicted: Mapping[str, str]) -> dict[str, float]:
    """Score each question by itself; gold answers without a word that counts are left out."""
    missing = [key for key in gold if key not in predicted]
    if missing:
        raise ValueError(
            f"Expected a prediction for every question. Received: none for {missing[0]!r}"
        )
    raw = {}
    for key, answers in gold.items():
        answers = [answer for answer in answers if normalise(answer)] or [""]
        raw[key] = _best(score, answers, predicted[key])
    return raw


def _percent(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / len(values)
