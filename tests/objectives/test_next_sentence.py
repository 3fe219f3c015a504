"""Pairs and single runs of sentences: labels, coverage, lengths.

The order of the random draws is compared with the published rules in
tests/data/test_published_instances.py.
"""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from keras_bert3.objectives.next_sentence import (
    IS_NEXT,
    IS_RANDOM,
    draw_any_document,
    draw_other_document,
    draw_target_length,
    sentence_pairs,
    single_segments,
)


def corpus(seed, num_documents, most_sentences=30, most_tokens=25):
    rng = random.Random(seed)
    sentences = [rng.randint(1, most_sentences) for _ in range(num_documents)]
    lengths = [rng.randint(1, most_tokens) for _ in range(sum(sentences))]
    return np.array([0, *itertools.accumulate(lengths)]), np.array(
        [0, *itertools.accumulate(sentences)]
    )


def document_of(token, sentence_offsets, document_offsets):
    bounds = sentence_offsets[document_offsets]
    return int(np.searchsorted(bounds, token, "right")) - 1


def test_N1_label_0_is_the_real_next_sentence_and_1_a_random_one():
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    offsets = corpus(1, 40)
    labels = Counter()
    for current in range(40):
        rng = random.Random(current)
        for pair in sentence_pairs(*offsets, range(40), current, 60, 0.1, rng):
            first = document_of(pair.first_begin, *offsets)
            second = document_of(pair.second_begin, *offsets)
            assert first == current
            labels[pair.is_random] += 1
            if pair.is_random == IS_NEXT:
                assert second == current
                assert pair.first_begin + pair.first_length <= pair.second_begin
            else:
                assert second != current
    assert labels[IS_NEXT] > 50 and labels[IS_RANDOM] > labels[IS_NEXT]


def test_N1_a_consecutive_pair_touches_unless_it_was_cut():
    offsets = [0, 4, 8, 12], [0, 2, 3]
    for seed in range(50):
        for pair in sentence_pairs(*offsets, [0, 1], 0, 20, 0.0, random.Random(seed)):
            if pair.is_random == IS_NEXT:
                assert tuple(pair) == (0, 4, 4, 4, IS_NEXT)


def test_pairs_fit_are_not_empty_and_stay_inside_one_document():
    offsets = corpus(2, 30)
    bounds = offsets[0][offsets[1]]
    for most in (2, 3, 17, 125):
        for current in range(30):
            pairs = sentence_pairs(*offsets, range(30), current, most, 0.3, random.Random(current))
            for pair in pairs:
                assert pair.first_length >= 1 and pair.second_length >= 1
                assert pair.first_length + pair.second_length <= most
                for begin, length in (pair[:2], pair[2:4]):
                    document = document_of(begin, *offsets)
                    assert begin + length <= bounds[document + 1]


def test_without_random_segments_every_sentence_is_used_once():
    offsets = corpus(3, 2, most_sentences=40)

    class AlwaysNext(random.Random):
        def random(self):
            return 0.7

    pairs = list(sentence_pairs(*offsets, [0, 1], 0, 10**6, 0.0, AlwaysNext(0)))
    assert len(pairs) == 1
    (pair,) = pairs
    assert pair.first_begin == 0
    assert pair.first_length + pair.second_length == offsets[0][offsets[1][1]]


def test_documents_are_named_by_number_and_drawn_from_the_list_alone():
    offsets = corpus(4, 20)
    listed = [3, 17, 8]
    seen = set()
    for place, document in enumerate(listed):
        for pair in sentence_pairs(*offsets, listed, place, 40, 0.1, random.Random(place)):
            assert document_of(pair.first_begin, *offsets) == document
            seen.add(document_of(pair.second_begin, *offsets))
    assert seen == set(listed)


def test_drawing_another_document():
    rng = random.Random(1)
    drawn = Counter(draw_other_document(rng, 5, 2) for _ in range(8000))
    assert set(drawn) == {0, 1, 3, 4} and min(drawn.values()) > 1850
    with pytest.raises(ValueError, match="at least 2 documents"):
        draw_other_document(rng, 1, 0)
    assert draw_any_document(rng, 1, 0) == 0
    repeats = sum(draw_any_document(random.Random(s), 2, 0) == 0 for s in range(20000))
    assert 3 < repeats < 50  # 20000 / 2**10 expected


def test_target_lengths():
    rng = random.Random(1)
    targets = Counter(draw_target_length(20, 0.5, rng) for _ in range(38000))
    assert set(targets) == set(range(2, 21))
    assert targets[20] == pytest.approx(20000, rel=0.03)
    assert draw_target_length(20, 0.0, rng) == 20


def test_single_runs_cover_each_document_exactly_once():
    offsets = corpus(5, 25, most_tokens=90)
    bounds = offsets[0][offsets[1]]
    for document in range(25):
        for short in (0.0, 0.4):
            runs = list(single_segments(*offsets, document, 60, short, random.Random(1)))
            token = bounds[document]
            for run in runs:
                assert run.first_begin == token
                assert 1 <= run.first_length <= 60
                assert run[2:] == (0, 0, IS_NEXT)
                token += run.first_length
            assert token == bounds[document + 1]


def test_single_runs_take_as_many_whole_sentences_as_fit():
    sentence_offsets, document_offsets = [0, 5, 10, 15, 40, 43], [0, 5]
    runs = single_segments(sentence_offsets, document_offsets, 0, 12, 0.0, random.Random(0))
    taken = [(run.first_begin, run.first_length) for run in runs]
    assert taken == [(0, 10), (10, 5), (15, 12), (27, 12), (39, 4)]
    exact = single_segments(sentence_offsets, document_offsets, 0, 10, 0.0, random.Random(0))
    assert next(exact).first_length == 10


def test_N3_one_long_document_gives_runs():
    offsets = list(range(0, 510, 10)), [0, 50]
    assert len(list(single_segments(*offsets, 0, 62, 0.0, random.Random(0)))) == 9
    with pytest.raises(ValueError, match="at least 2 documents"):
        list(sentence_pairs(*offsets, [0], 0, 61, 0.0, random.Random(0)))


@pytest.mark.parametrize("most", [-1, 1])
def test_no_room_is_refused(most):
    offsets = [0, 4, 8], [0, 1, 2]
    with pytest.raises(ValueError, match=f"Received: room for {most}"):
        list(sentence_pairs(*offsets, [0, 1], 0, most, 0.1, random.Random(0)))
    with pytest.raises(ValueError, match=f"Received: room for {most}"):
        list(single_segments(*offsets, 0, most, 0.1, random.Random(0)))
