"""Next-sentence prediction: which two runs of tokens make an example (BERT section 3.1, A.2).

An example is five integers into one flat array of tokens: where A begins, its length, where B
begins, its length, and whether B is random. A corpus is that array and two tables of offsets:
sentence s is the tokens `sentence_offsets[s]:sentence_offsets[s + 1]`, document d the sentences
`document_offsets[d]:document_offsets[d + 1]`. Every segment is a run of adjacent sentences of one
document, cut at its ends, so nothing is copied before a batch is made.

The rules and the order of their random draws are those of google-research/bert
create_pretraining_data.py.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

IS_NEXT = 0
IS_RANDOM = 1

Offsets = np.ndarray | Sequence[int] | memoryview
DrawDocument = Callable[[random.Random, int, int], int]


class SegmentPair(NamedTuple):
    """Two runs of a flat token array; `is_random` is IS_NEXT (B follows A) or IS_RANDOM."""

    first_begin: int
    first_length: int
    second_begin: int
    second_length: int
    is_random: int


def draw_target_length(max_tokens: int, short_probability: float, rng: random.Random) -> int:
    """Draw how many tokens to aim at: `max_tokens`, or now and then any number from 2 up.

    Args:
        max_tokens: tokens of an example without its special tokens.
        short_probability: chance of a shorter target (0.1 in the published script).
        rng: the generator to draw from.
    """
    if rng.random() < short_probability:
        return rng.randint(2, max_tokens)
    return max_tokens


def draw_any_document(rng: random.Random, count: int, current: int) -> int:
    """Draw a place in `range(count)` as published: ten tries to miss `current`, then whatever came.

    With one document it is `current` itself, and with few documents it may be.
    """
    place = current
    for _ in range(10):
        place = rng.randint(0, count - 1)
        if place != current:
            break
    return place


def draw_other_document(rng: random.Random, count: int, current: int) -> int:
    """Draw a place in `range(count)` that is not `current`, each with the same chance.

    Raises:
        ValueError: there is no other document.
    """
    if count < 2:
        raise ValueError(f"Expected at least 2 documents to draw another. Received: {count}.")
    place = rng.randint(0, count - 2)
    return place + (place >= current)


def sentence_pairs(
    sentence_offsets: Offsets,
    document_offsets: Offsets,
    documents: Sequence[int],
    current: int,
    max_tokens: int,
    short_probability: float,
    rng: random.Random,
    draw_document: DrawDocument = draw_other_document,
) -> Iterator[SegmentPair]:
    """Yield the pairs of one document, one after the other.

    Sentences are gathered until the target length is reached and cut at a random place into A and
    the rest. B is the rest (label 0, IS_NEXT), or in half of the cases, and always when a single
    sentence was gathered, a run of another document (label 1, IS_RANDOM); the rest then begins the
    next pair. Pairs longer than `max_tokens` lose tokens at a random end of the longer segment.

    Args:
        sentence_offsets: [S + 1], first token of each sentence, then the number of tokens.
        document_offsets: [D + 1], first sentence of each document, then the number of sentences.
        documents: the documents that take part, by number; random segments come from them.
        current: the place in `documents` of the document to walk.
        max_tokens: most tokens of A and B together: the sequence length less 3.
        short_probability: chance that the whole document aims at a shorter length.
        rng: drawn from between the pairs too, as they are asked for.
        draw_document: how to find a random document: `draw_any_document` is the published rule.

    Raises:
        ValueError: `max_tokens` is below 2, or there is no other document to draw.

    Example:
        >>> pairs = sentence_pairs([0, 4, 8, 12], [0, 2, 3], [0, 1], 0, 20, 0.0, random.Random(3))
        >>> [tuple(pair) for pair in pairs]
        [(0, 4, 8, 4, 1), (4, 4, 8, 4, 1)]
    """
    _check_max_tokens(max_tokens)
    target = draw_target_length(max_tokens, short_probability, rng)
    begin, end = _sentences_of(document_offsets, documents[current])
    while begin < end:
        stop = _gather(sentence_offsets, begin, end, target)
        middle = begin + 1 if stop - begin < 2 else begin + rng.randint(1, stop - begin - 1)
        first = _run(sentence_offsets, begin, middle)
        is_random = stop - begin == 1 or rng.random() < 0.5
        if is_random:
            place = draw_document(rng, len(documents), current)
            other, other_end = _sentences_of(document_offsets, documents[place])
            other += rng.randint(0, other_end - other - 1)
            other_stop = _gather(sentence_offsets, other, other_end, target - (first[1] - first[0]))
            second = _run(sentence_offsets, other, other_stop)
            begin = middle
        else:
            second = _run(sentence_offsets, middle, stop)
            begin = stop
        _truncate(first, second, max_tokens, rng)
        yield _pair(first, second, IS_RANDOM if is_random else IS_NEXT)


def single_segments(
    sentence_offsets: Offsets,
    document_offsets: Offsets,
    document: int,
    max_tokens: int,
    short_probability: float,
    rng: random.Random,
) -> Iterator[SegmentPair]:
    """Yield runs of whole sentences of one document, for pre-training without the second sentence.

    Each takes as many sentences as its target length holds; the target is drawn for each. A
    sentence longer than its target is cut there and goes on in the next run, so every token of the
    document is in exactly one run (RoBERTa section 4.2, "doc-sentences").

    Args:
        sentence_offsets: [S + 1], as for `sentence_pairs`.
        document_offsets: [D + 1], as for `sentence_pairs`.
        document: number of the document to walk.
        max_tokens: most tokens of a run: the sequence length less 2.
        short_probability: chance that a run aims at a shorter length.
        rng: the generator to draw from.

    Raises:
        ValueError: `max_tokens` is below 2.

    Example:
        >>> runs = single_segments([0, 4, 8, 20], [0, 3], 0, 10, 0.0, random.Random(0))
        >>> [(run.first_begin, run.first_length) for run in runs]
        [(0, 8), (8, 10), (18, 2)]
    """
    _check_max_tokens(max_tokens)
    sentence, end = _sentences_of(document_offsets, document)
    token, last = _run(sentence_offsets, sentence, end)
    while token < last:
        limit = token + draw_target_length(max_tokens, short_probability, rng)
        # The last sentence end that is not past the limit.
        sentence_end = bisect_left(sentence_offsets, limit + 1, sentence, end + 1) - 1
        stop = int(sentence_offsets[sentence_end])
        if stop <= token:
            stop = min(limit, last)
        sentence = max(sentence, sentence_end)
        yield SegmentPair(token, stop - token, 0, 0, IS_NEXT)
        token = stop


def _check_max_tokens(max_tokens: int) -> None:
    if max_tokens < 2:
        raise ValueError(
            "Expected room for at least 2 tokens beside the special tokens. "
            f"Received: room for {max_tokens}."
        )


def _sentences_of(document_offsets: Offsets, document: int) -> tuple[int, int]:
    return int(document_offsets[document]), int(document_offsets[document + 1])


def _gather(sentence_offsets: Offsets, begin: int, end: int, target: int) -> int:
    """Give the end of the fewest sentences from `begin`, at least one, of `target` tokens."""
    goal = sentence_offsets[begin] + target
    return bisect_left(sentence_offsets, goal, begin + 1, end)


def _run(sentence_offsets: Offsets, begin: int, end: int) -> list[int]:
    return [int(sentence_offsets[begin]), int(sentence_offsets[end])]


def _truncate(first: list[int], second: list[int], max_tokens: int, rng: random.Random) -> None:
    """Move an end of the longer run, the second when equal, until both fit."""
    while (first[1] - first[0]) + (second[1] - second[0]) > max_tokens:
        longer = first if first[1] - first[0] > second[1] - second[0] else second
        if rng.random() < 0.5:
            longer[0] += 1
        else:
            longer[1] -= 1


def _pair(first: list[int], second: list[int], is_random: int) -> SegmentPair:
    return SegmentPair(first[0], first[1] - first[0], second[0], second[1] - second[0], is_random)
