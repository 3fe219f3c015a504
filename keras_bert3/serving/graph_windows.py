"""Texts of any length as overlapping windows inside a graph; see `data/windows.py`."""

from typing import Any, NamedTuple

from keras_bert3.serving.graph_library import tensorflow


class Windows(NamedTuple):
    """Windows of the tokens of all texts, one window after the other.

    Args:
        owners: int64 `[w]`, the text of each window.
        tokens: ragged int64 `[w, None]`, the tokens in each, counted over all texts.
        rows: int64 `[t]`, the window of each entry of `tokens.values`.
        places: int64 `[t]`, its place there.
        is_best: bool `[t]`, whether no other window shows more of the token's context.
    """

    owners: Any
    tokens: Any
    rows: Any
    places: Any
    is_best: Any


def cut(lengths, room, stride: int) -> Windows:
    """Cut texts into windows; one without tokens is an empty window.

    Args:
        lengths: int64 `[b]`, tokens of each text.
        room: int64 `[b]`, tokens that a window of each text holds.
        stride: tokens from the beginning of one window to that of the next.
    """
    tf = tensorflow()

    more = tf.maximum(lengths - room, 0)
    numbers = tf.ragged.range(1 + (more + stride - 1) // stride)
    owners = numbers.value_rowids()
    first = numbers.values * stride
    end = tf.minimum(tf.gather(lengths, owners), first + tf.gather(room, owners))
    begin = tf.gather(tf.cumsum(lengths, exclusive=True), owners) + first
    tokens = tf.ragged.range(begin, begin + end - first)
    rows = tokens.value_rowids()
    places = tokens.values - tf.gather(begin, rows)
    sizes = tf.gather(end - first, rows)
    best = _is_best(tokens.values, rows, places, sizes, tf.reduce_sum(lengths))
    return Windows(owners, tokens, rows, places, best)


def _is_best(tokens, rows, places, sizes, count):
    """Whether a token has no more context in another row; the first of equals counts."""
    tf = tensorflow()

    nearest = tf.minimum(places, sizes - 1 - places)
    context = tf.cast(nearest, tf.float64) + 0.01 * tf.cast(sizes, tf.float64)
    most = tf.gather(tf.math.unsorted_segment_max(context, tokens, count), tokens)
    winners = tf.where(context == most, rows, rows.dtype.max)
    return rows == tf.gather(tf.math.unsorted_segment_min(winners, tokens, count), tokens)
