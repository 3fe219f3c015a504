"""Ids of texts to the inputs of a network inside a graph: framing, truncation, padding."""

from typing import Any, NamedTuple

from keras_bert3.serving.graph_library import tensorflow


class GraphInputs(NamedTuple):
    """Rows of a batch, as long as the longest of them.

    Args:
        token_ids: int32 `[b, q]`.
        segment_ids: int32 `[b, q]`.
        lengths: int32 `[b]`, real tokens of each row; what follows is padding.
    """

    token_ids: Any
    segment_ids: Any
    lengths: Any


def of_equal_length(first, second):
    """Return two columns of texts, or end the call: one text would silently stand for many."""
    tf = tensorflow()

    is_equal = tf.shape(first)[0] == tf.shape(second)[0]
    message = "Expected as many second texts as first ones"
    with tf.control_dependencies([tf.debugging.Assert(is_equal, [message])]):
        return tf.identity(first), tf.identity(second)


def pack(first, second, limit: int | None, *, cls_id: int, sep_id: int, pad_id: int) -> GraphInputs:
    """Frame, truncate and pad, as `tokenizers.packing.pack` does.

    Args:
        first: ragged int32 `[b, None]`, ids of the texts.
        second: the same for second texts, or None.
        limit: tokens of a row, special ones included; None truncates nothing.
        cls_id: the id of [CLS].
        sep_id: the id of [SEP].
        pad_id: the id of [PAD].

    Example:
        >>> ids = tf.ragged.constant([[7, 8, 9, 10]])
        >>> pack(ids, None, 5, cls_id=1, sep_id=2, pad_id=0).token_ids
        [[1, 7, 8, 9, 2]]
    """
    tf = tensorflow()

    kept, others = _kept(first, second, limit)
    segment_start = kept + 2
    lengths = segment_start if second is None else segment_start + others + 1
    column = tf.range(tf.reduce_max(tf.concat([[2], lengths], 0)))[None]
    rows = _spread(first, column - 1)
    is_separator = column == segment_start[:, None] - 1
    if second is not None:
        is_second = column >= segment_start[:, None]
        rows = tf.where(is_second, _spread(second, column - segment_start[:, None]), rows)
        is_separator |= column == lengths[:, None] - 1
    is_real = column < lengths[:, None]
    token_ids = tf.where(is_separator, sep_id, tf.where(column == 0, cls_id, rows))
    segments = is_real & (column >= segment_start[:, None])
    return GraphInputs(tf.where(is_real, token_ids, pad_id), tf.cast(segments, tf.int32), lengths)


def plain(ids, limit: int | None, pad_id: int) -> GraphInputs:
    """Truncate and pad ids as they are, without special tokens."""
    tf = tensorflow()

    lengths = tf.cast(ids.row_lengths(), tf.int32)
    lengths = lengths if limit is None else tf.minimum(lengths, limit)
    column = tf.range(tf.reduce_max(tf.concat([[2], lengths], 0)))[None]
    token_ids = tf.where(column < lengths[:, None], _spread(ids, column), pad_id)
    return GraphInputs(token_ids, tf.zeros_like(token_ids), lengths)


def _kept(first, second, limit: int | None):
    """How many ids of each text stay: `packing.truncated_lengths`, for all rows at once."""
    tf = tensorflow()

    lengths = tf.cast(first.row_lengths(), tf.int32)
    if second is None:
        return (lengths if limit is None else tf.minimum(lengths, limit - 2)), None
    others = tf.cast(second.row_lengths(), tf.int32)
    if limit is None:
        return lengths, others
    room = limit - 3
    others = tf.minimum(others, tf.maximum(room // 2, room - lengths))
    return tf.minimum(lengths, room - others), others


def _spread(ids, places):
    """Look up the id at each place of each row; anything where a row has none."""
    tf = tensorflow()

    values = tf.pad(ids.values, [[0, 1]])
    flat = tf.cast(ids.row_starts(), tf.int32)[:, None] + places
    return tf.gather(values, tf.clip_by_value(flat, 0, tf.size(values) - 1))
