import itertools

import numpy as np
import pytest

from keras_bert3.tasks.answers import (
    Candidates,
    answers_of,
    best_spans,
    merge,
    window_candidates,
)
from keras_bert3.tasks.question_windows import Question, QuestionWindow


@pytest.mark.parametrize("length", [1, 5, 50])
def test_the_best_spans_are_those_of_all_pairs(length):
    generator = np.random.default_rng(length)
    start, end = generator.normal(size=(2, length))
    may_start = generator.random(length) < 0.7
    may_start[0] = True
    pairs = [
        (start[i] + end[j], i, j)
        for i, j in itertools.product(range(length), repeat=2)
        if may_start[i] and i <= j < i + 30
    ]
    expected = sorted(pairs, reverse=True)[:20]
    received = best_spans(start, end, may_start, 20)
    assert [row[1:] for row in received] == [row[1:] for row in expected]
    np.testing.assert_allclose([row[0] for row in received], [row[0] for row in expected])


def test_no_token_no_span():
    assert best_spans(np.zeros(0), np.zeros(0), np.zeros(0, bool), 5) == []
    assert best_spans(np.zeros(2), np.zeros(2), np.zeros(2, bool), 5) == []


def test_Q2_the_null_score_is_the_least_of_all_windows():
    windows = [Candidates([(0, 1)], [1.0], 2.0), Candidates([(0, 1), (2, 3)], [3.0, 0.5], -1.0)]
    merged = merge(windows, 20)
    assert merged.null_score == -1.0
    assert merged.spans == [(0, 1), (2, 3)] and merged.scores == [3.0, 0.5]


def test_a_window_is_read_at_its_tokens_only():
    question = Question([7, 7], np.arange(4), np.array([[0, 2], [3, 5], [5, 5], [6, 8]]))
    window = QuestionWindow(0, [7, 7], np.arange(1, 4), 1, np.array([False, True, True]))
    # [CLS] q q [SEP] 1 2 3 [SEP]: tokens 1 to 3 of the text are at 4 to 6
    start = np.array([5.0, 90, 90, 90, 80, 70, 1, 90])
    end = np.array([0.5, 90, 90, 90, 0, 80, 2, 90])
    found = window_candidates(window, question, {"start": start, "end": end}, 20)
    # token 1 has its context elsewhere, token 2 is nothing but space
    assert found == Candidates([(6, 8)], [3.0], 5.5)


def test_without_a_threshold_every_question_is_answered():
    found = Candidates([(0, 2), (3, 5)], [2.0, 1.0], 9.0)
    answers = answers_of("ab cd", found)
    assert [a.text for a in answers] == ["ab", "cd"]
    np.testing.assert_allclose([a.score for a in answers], [np.e / (1 + np.e), 1 / (1 + np.e)])
    assert answers[0].null_margin == 7.0


@pytest.mark.parametrize(("threshold", "text"), [(6.9, ""), (7.0, "ab"), (7.1, "ab")])
def test_no_answer_is_given_above_the_threshold(threshold, text):
    found = Candidates([(0, 2), (3, 5)], [2.0, 1.0], 9.0)
    answers = answers_of("ab cd", found, threshold)
    assert answers[0].text == text and len(answers) == 3
    assert all("ab cd"[a.start : a.end] == a.text for a in answers)
    np.testing.assert_allclose(sum(a.score for a in answers), 1.0)
    null = next(a for a in answers if not a.text)
    np.testing.assert_allclose(null.score, np.exp(7) / (np.exp(7) + 1 + np.exp(-1)))


def test_an_empty_text_has_no_answer():
    for threshold in (None, 0.0):
        (answer,) = answers_of("", Candidates([], [], 1.0), threshold)
        assert answer[:4] == ("", 0, 0, 1.0) and answer.null_margin == np.inf
