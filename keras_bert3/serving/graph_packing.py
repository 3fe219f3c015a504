"""Ids of texts to the inputs of a network inside a graph: framing, truncation, padding."""

from typing import Any, NamedTuple

from keras_bert3.serving.graph_library import tensorflow

MULTIPLE = 8
"""Rows are padded to such a multiple.

For every product of another shape TensorFlow on processors keeps code of its own, a thread at a
time: a server that had seen 8 sizes and 128 lengths of batches held 240 MB of it (TensorFlow 2.21).
"""


class GraphInputs(NamedTuple):
    """Rows of a batch, as long as the longest of them and a little longer, see `MULTIPLE`.

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
    kept, others = _kept(first, second, limit)
    return frame(first, second, (cls_id, sep_id, sep_id), kept, others, limit, pad_id)


def frame(first, second, special, kept, others, limit: int | None, pad_id: int) -> GraphInputs:
    """Put special tokens around the beginnings of texts, and pad.

    Args:
        first: ragged int32 `[b, None]`.
        second: the same, or None.
        special: ids before the first text, between both and at the end.
        kept: int32 `[b]`, tokens of each first text that stay.
        others: the same for the second ones, or None.
        limit: columns at most, which no row needs more of.
        pad_id: what stands on padding.
    """
    tf = tensorflow()

    before, between, last = special
    segment_start = kept + 2
    lengths = segment_start if second is None else segment_start + others + 1
    column = _columns(lengths, limit)
    rows = _spread(first, column - 1)
    if second is not None:
        is_second = column >= segment_start[:, None]
        rows = tf.where(is_second, _spread(second, column - segment_start[:, None]), rows)
        rows = tf.where(column == segment_start[:, None] - 1, between, rows)
    rows = tf.where(column == lengths[:, None] - 1, last, tf.where(column == 0, before, rows))
    is_real = column < lengths[:, None]
    segments = is_real & (column >= segment_start[:, None])
    return GraphInputs(tf.where(is_real, rows, pad_id), tf.cast(segments, tf.int32), lengths)


def frame_halves(first, second, limit: int, special, pad_id: int) -> GraphInputs:
    """Frame as GPT-1's fine-tuning does: each text of a pair is cut to its half of the row.

    See `objectives/input_transformations.py`; arguments are those of `frame`, and `limit` is the
    tokens of a row.
    """
    tf = tensorflow()

    room = limit - 2 if second is None else limit // 2 - 2
    kept, others = (
        None if ids is None else tf.minimum(tf.cast(ids.row_lengths(), tf.int32), room)
        for ids in (first, second)
    )
    return frame(first, second, special, kept, others, limit, pad_id)


def plain(ids, limit: int | None, pad_id: int) -> GraphInputs:
    """Truncate and pad ids as they are, without special tokens."""
    tf = tensorflow()

    lengths = tf.cast(ids.row_lengths(), tf.int32)
    lengths = lengths if limit is None else tf.minimum(lengths, limit)
    column = _columns(lengths, limit)
    token_ids = tf.where(column < lengths[:, None], _spread(ids, column), pad_id)
    return GraphInputs(token_ids, tf.zeros_like(token_ids), lengths)


def _columns(lengths, limit: int | None):
    """Places `[1, q]` of rows of these lengths `[b]`; two at least."""
    tf = tensorflow()

    longest = tf.reduce_max(tf.concat([[2], lengths], 0))
    rounded = (longest + MULTIPLE - 1) // MULTIPLE * MULTIPLE
    if limit is not None:
        rounded = tf.maximum(longest, tf.minimum(rounded, limit))
    return tf.range(rounded)[None]


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
