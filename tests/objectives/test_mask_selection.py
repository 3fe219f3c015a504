"""Choosing the tokens of a batch: budgets, words and slots on hand-made random bits."""

import numpy as np

from keras_bert3.objectives.mask_selection import (
    choose_tokens,
    choose_words,
    first_positions,
    starts_of_words,
)


def keys_of(ranks):
    """Random bits whose upper half orders the positions by the given ranks."""
    return np.array(ranks, np.uint64) << np.uint64(32)


def test_the_smallest_keys_among_the_candidates_are_chosen():
    candidates = np.array([[0, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
    chosen = choose_tokens(keys_of([[0, 4, 1, 3, 2]] * 3), candidates, np.array([2, 2, 2]))
    assert chosen.astype(int).tolist() == [[0, 0, 1, 0, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]


def test_a_word_that_would_overflow_is_passed_over():
    candidates = np.array([[0, 1, 1, 1, 1, 1, 0]], bool)
    starts = np.array([[0, 1, 1, 0, 0, 1, 0]], bool)  # words 1, 2-4, 5
    keys = keys_of([[0, 2, 1, 9, 9, 3, 0]])  # order: 2-4, 1, 5
    for budget, expected in ((1, [1]), (2, [1, 5]), (3, [2, 3, 4]), (4, [1, 2, 3, 4])):
        chosen = choose_words(keys, candidates, starts, np.array([budget]), 9)
        assert np.flatnonzero(chosen[0]).tolist() == expected


def test_the_shortest_word_is_taken_when_none_fits():
    candidates = np.ones((1, 6), bool)
    starts = np.array([[1, 0, 0, 0, 1, 0]], bool)
    keys = keys_of([[0, 0, 0, 0, 5, 0]])
    chosen = choose_words(keys, candidates, starts, np.array([1]), 9)
    assert np.flatnonzero(chosen[0]).tolist() == [4, 5]


def test_starts_of_words_by_vocabulary_and_by_number():
    candidates = np.array([[0, 1, 1, 0, 1, 1]], bool)
    is_continuation = np.array([False, True])
    token_ids = np.array([[1, 1, 1, 1, 1, 0]])
    by_vocabulary = starts_of_words(token_ids, candidates, is_continuation, None)
    assert (by_vocabulary & candidates).astype(int).tolist() == [[0, 1, 0, 0, 1, 1]]
    by_number = starts_of_words(token_ids, candidates, None, np.array([[7, 7, 7, 7, 7, 8]]))
    assert (by_number & candidates).astype(int).tolist() == [[0, 1, 0, 0, 1, 1]]


def test_slots_hold_the_positions_in_order():
    chosen = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], bool)
    positions, valid = first_positions(chosen, 3)
    assert positions.tolist() == [[1, 3, 0], [0, 0, 0], [0, 1, 2]]
    assert valid.sum(1).tolist() == [2, 0, 3]
