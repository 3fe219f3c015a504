"""The official counting, written again from its published description, on random predictions."""

import random
import re
import string

import pytest

from keras_bert3.metrics.squad import (
    best_thresholds,
    exact_match,
    f1,
    f1_or_nothing,
    normalise,
    squad1_scores,
    squad2_scores,
)

WORDS = ["the", "Cat", "cat", "a", "an", "sat.", "U.S.", "“mat”", "7-11", "An", "theory", ",", "!"]


def plain_words(text):
    kept = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return [w for w in re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", kept)) if w]


def plain_f1(gold, predicted):
    left, shared = plain_words(gold), 0
    for word in plain_words(predicted):
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0
    precision = shared / len(plain_words(predicted))
    recall = shared / len(plain_words(gold))
    return 2 * precision * recall / (precision + recall)


def plain_exact(gold, predicted):
    return int(plain_words(gold) == plain_words(predicted))


def plain_f1_2(gold, predicted):
    if not plain_words(gold) or not plain_words(predicted):
        return plain_exact(gold, predicted)
    return plain_f1(gold, predicted)


def random_text(generator, most=4):
    return " ".join(generator.choice(WORDS) for _ in range(generator.randint(0, most)))


def random_data(seed, without_answer):
    generator = random.Random(seed)
    gold, predicted, margins = {}, {}, {}
    for i in range(120):
        answers = [random_text(generator) for _ in range(generator.randint(1, 3))]
        gold[str(i)] = [] if generator.random() < without_answer else answers
        copied = generator.random() < 0.4 and gold[str(i)]
        predicted[str(i)] = gold[str(i)][0] if copied else random_text(generator)
        margins[str(i)] = generator.choice([generator.uniform(-3, 3), 0.5])
    return gold, predicted, margins


@pytest.mark.parametrize("seed", range(5))
def test_squad_1_scores_are_those_of_the_published_description(seed):
    gold, predicted, _ = random_data(seed, 0.0)
    del predicted["3"], predicted["50"]
    expected = {"exact": 0, "f1": 0}
    for key, answers in gold.items():
        if key in predicted:
            expected["exact"] += max(plain_exact(answer, predicted[key]) for answer in answers)
            expected["f1"] += max(plain_f1(answer, predicted[key]) for answer in answers)
    scores = squad1_scores(gold, predicted)
    assert scores["total"] == 120 and 20 < scores["exact"] < 80
    for name, value in expected.items():
        assert scores[name] == pytest.approx(100 * value / 120, abs=1e-9)


def plain_scores_2(gold, predicted):
    exact, overlap = {}, {}
    for key, answers in gold.items():
        kept = [answer for answer in answers if plain_words(answer)] or [""]
        exact[key] = max(plain_exact(answer, predicted[key]) for answer in kept)
        overlap[key] = max(plain_f1_2(answer, predicted[key]) for answer in kept)
    return exact, overlap


@pytest.mark.parametrize("seed", range(5))
def test_squad_2_scores_are_those_of_the_published_description(seed):
    gold, predicted, margins = random_data(seed, 0.5)
    for threshold in (None, 0.5, -1.0):
        given = None if threshold is None else margins
        scores = squad2_scores(gold, predicted, given, threshold or 0.0)
        for name, raw in zip(("exact", "f1"), plain_scores_2(gold, predicted), strict=True):
            for key in gold:
                if threshold is not None and margins[key] > threshold:
                    raw[key] = float(not gold[key])
            with_answer = [raw[key] for key in gold if gold[key]]
            without = [raw[key] for key in gold if not gold[key]]
            assert scores[name] == pytest.approx(100 * sum(raw.values()) / 120)
            part = 100 * sum(with_answer) / len(with_answer)
            assert scores[f"has_answer_{name}"] == pytest.approx(part)
            part = 100 * sum(without) / len(without)
            assert scores[f"no_answer_{name}"] == pytest.approx(part)
        assert scores["has_answer_total"] + scores["no_answer_total"] == scores["total"] == 120


@pytest.mark.parametrize("seed", range(5))
def test_Q3_best_thresholds_are_those_of_trying_each(seed):
    gold, predicted, margins = random_data(seed, 0.5)
    # no two alike, and of some use
    margins = {key: value + int(key) * 1e-6 - 2 * bool(gold[key]) for key, value in margins.items()}
    best = best_thresholds(gold, predicted, margins)
    for name, raw in zip(("exact", "f1"), plain_scores_2(gold, predicted), strict=True):
        tried = {}
        for threshold in [float("-inf"), *margins.values()]:
            tried[threshold] = sum(
                raw[key]
                if gold[key] and margins[key] <= threshold
                # an empty prediction is no answer, whatever its margin
                else float(not gold[key] and (margins[key] > threshold or not predicted[key]))
                for key in gold
            )
        most = max(tried.values())
        assert best[f"best_{name}"] == pytest.approx(100 * most / 120)
        threshold = best[f"best_{name}_threshold"]
        assert tried[threshold] == pytest.approx(most) and threshold != 0.0
        reached = squad2_scores(gold, predicted, margins, threshold)
        # an answer of articles alone is no answer for scores, but one for thresholds
        assert reached[name] >= best[f"best_{name}"] - 1e-9
        assert reached[f"best_{name}"] == best[f"best_{name}"]


def test_Q3_two_questions_whose_scores_differ():
    gold, predicted = {"a": ["cat"], "b": []}, {"a": "cat", "b": "dog"}
    best = best_thresholds(gold, predicted, {"a": -2.5, "b": 1.0})
    assert best["best_f1"] == 100.0 and best["best_f1_threshold"] == -2.5
    with pytest.raises(ValueError, match="for every question. Received: none for .b."):
        best_thresholds(gold, predicted, {"a": 0.0})


def test_answers_are_compared_by_their_words():
    assert normalise("  The U.S. Army's a-team ") == "us armys ateam"
    assert exact_match("The cat", "cat!") == 1.0 and exact_match("cats", "cat") == 0.0
    assert f1("the black cat", "cat cat") == 0.5
    assert f1("the", "a") == 0.0 and f1_or_nothing("the", "a") == 1.0
    assert f1_or_nothing("cat", "") == 0.0


def test_missing_predictions_are_named_in_squad_2():
    with pytest.raises(ValueError, match="Received: none for 'b'"):
        squad2_scores({"a": ["x"], "b": []}, {"a": "x"})
