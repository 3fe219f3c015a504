"""Byte-pair encoding inside a graph: the pair that was learned first is joined, again and again.

All words of a batch are worked on at once. In each round every word joins its first-learned pair,
wherever it stands (Sennrich et al. 2016, section 3.2), until no word knows a pair of its own.
Nothing is kept between calls, unlike a table of words seen, which grows with what users send.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.serving.graph_library import tensorflow

LONGEST_WORD = 10_000
"""Characters or bytes: rounds, and with them time, grow with the longest word of a batch."""
_NEVER = np.iinfo("int32").max


class Joined(NamedTuple):
    """Pieces of words, one after the other: each `[p]`.

    Args:
        ids: int32.
        firsts: int64, where among the characters or bytes each begins.
    """

    ids: Any
    firsts: Any


class GraphMerges:
    """Joins neighbours into longer pieces.

    Args:
        ids: of all tokens.
        merges: pairs of tokens, in the order in which they were learned.

    Call arguments:
        ids: int32 `[n]`, of the characters or bytes of all words.
        words: int64 `[n]`, the word of each, counted from 0.

    Returns:
        `Joined`. A word of more than `LONGEST_WORD` ends the call with InvalidArgument.
    """

    def __init__(self, ids: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        self.size = len(ids)
        ranks = {pair: rank for rank, pair in enumerate(merges)}  # of a pair twice, the later
        table = sorted(
            (ids[left] * self.size + ids[right], rank, ids[left + right])
            for (left, right), rank in ranks.items()
        )
        table.append((np.iinfo("int64").max, _NEVER, 0))
        keys, orders, joined = zip(*table, strict=True)
        self.keys = np.array(keys, "int64")
        self.ranks, self.joined = np.array(orders, "int32"), np.array(joined, "int32")
        self.at_once = _is_ordered(ranks)

    def __call__(self, ids, words) -> Joined:
        """Join what can be joined."""
        tf = tensorflow()

        count = tf.reduce_max(tf.pad(words, [[1, 0]], constant_values=-1)) + 1
        sizes = tf.math.unsorted_segment_sum(tf.ones_like(words), words, count)
        is_short = tf.reduce_all(sizes <= LONGEST_WORD)
        message = f"Expected words of at most {LONGEST_WORD} characters or bytes"
        with tf.control_dependencies([tf.debugging.Assert(is_short, [message])]):
            firsts = tf.range(tf.size(ids, out_type=tf.int64))

        def join(_, ids, words, firsts):
            best, place = self._best_pairs(ids, words, count)
            rest = ~tf.pad(best, [[1, 0]])[:-1]
            ids = tf.where(best, tf.gather(self.joined, place), ids)
            kept = tf.where(rest)[:, 0]
            parts = (tf.gather(values, kept) for values in (ids, words, firsts))
            return (tf.reduce_any(best), *parts)

        flat = tf.TensorShape([None])
        shapes = (tf.TensorShape([]), flat, flat, flat)
        state = (tf.constant(True), ids, words, firsts)
        _, ids, _, firsts = tf.while_loop(lambda goes_on, *_: goes_on, join, state, shapes)
        return Joined(ids, firsts)

    def _best_pairs(self, ids, words, count):
        """Find the pieces that are joined with the next one, and each pair's place in the table."""
        tf = tensorflow()

        right = tf.pad(ids, [[0, 1]])[1:]
        is_pair = tf.pad(words, [[0, 1]], constant_values=-1)[1:] == words
        pairs = tf.cast(ids, tf.int64) * self.size + tf.cast(right, tf.int64)
        place = tf.searchsorted(tf.constant(self.keys), pairs)
        is_pair &= tf.gather(self.keys, place) == pairs
        ranks = tf.where(is_pair, tf.gather(self.ranks, place), _NEVER)
        best = tf.math.unsorted_segment_min(ranks, words, count)
        is_best = is_pair & (ranks == tf.gather(best, words))
        places = tf.range(tf.size(ids, out_type=tf.int64))
        if self.at_once:  # of neighbouring pairs, such as "aaa" has two, every second one
            runs = tf.cumsum(tf.cast(~is_best, tf.int32))
            begin = tf.math.unsorted_segment_min(
                tf.where(is_best, places, places.dtype.max), runs, tf.size(ids) + 1
            )
            return is_best & ((places - tf.gather(begin, runs)) % 2 == 0), place
        first = tf.math.unsorted_segment_min(
            tf.where(is_best, places, places.dtype.max), words, count
        )
        return is_best & (places == tf.gather(first, words)), place


def _is_ordered(ranks: Mapping[tuple[str, str], int]) -> bool:
    """Whether every pair was learned after both of its sides, by whatever pairs these are made.

    Then joining a pair never makes one that comes before it, and all places where it stands can be
    joined at once; else the left one goes first, and its neighbours are looked at anew.
    """
    made: dict[str, int] = {}
    for (left, right), rank in ranks.items():
        made[left + right] = max(rank, made.get(left + right, -1))
    return all(made.get(side, -1) < rank for pair, rank in ranks.items() for side in pair)
