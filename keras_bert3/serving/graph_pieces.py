"""What tokenizers inside a graph have in common: pieces, and where in a text each comes from."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_bert3.serving.graph_library import tensorflow


class Pieces(NamedTuple):
    """Pieces of a batch of texts, one after the other.

    Args:
        ids: int32 `[p]`.
        rows: int64 `[p]`, the text each belongs to.
        starts: int64 `[p]`, its first character in the text, space left out.
        ends: int64 `[p]`, the character after its last; twice, where a piece is space alone.
    """

    ids: Any
    rows: Any
    starts: Any
    ends: Any


class GraphTokenizer:
    """Cuts texts into ids, inside a `tf.function`; a subclass says how in `_pieces`.

    Call arguments:
        texts: string `[b]`, UTF-8. Anything else ends the call with InvalidArgument.

    Returns:
        A ragged int32 tensor `[b, None]`.
    """

    def _pieces(self, texts) -> Pieces:
        raise NotImplementedError

    @functools.cached_property
    def pieces(self) -> Callable[[Any], Pieces]:
        """A function from texts to their ids and where each comes from.

        It is traced once and called by all that need it, so a graph holds its tables once.
        """
        tf = tensorflow()

        spec = tf.TensorSpec([None], tf.string)
        return tf.function(self._pieces, input_signature=[spec], autograph=False)

    def __call__(self, texts):
        """Return the ids of texts."""
        tf = tensorflow()

        pieces = self.pieces(texts)
        count = tf.shape(texts)[0]
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(pieces.rows), pieces.rows, count)
        return tf.RaggedTensor.from_row_lengths(pieces.ids, lengths, validate=False)


def previous(values, rows, fill):
    """Return what stands before each of `[n]` in its row, `fill` where nothing does."""
    tf = tensorflow()

    shifted = tf.pad(values, [[1, 0]], constant_values=fill)[:-1]
    return tf.where(tf.pad(rows, [[1, 0]], constant_values=-1)[:-1] == rows, shifted, fill)


def following(values, rows, fill, by: int = 1):
    """Return what stands after each of `[n]` in its row, `fill` where nothing does."""
    tf = tensorflow()

    shifted = tf.pad(values, [[0, by]], constant_values=fill)[by:]
    return tf.where(tf.pad(rows, [[0, by]], constant_values=-1)[by:] == rows, shifted, fill)


def flags_at(places, count):
    """Return bool `[count]`, true at the places; those at `count` or beyond are nowhere."""
    tf = tensorflow()

    places = tf.boolean_mask(places, places < tf.cast(count, places.dtype))
    updates = tf.ones_like(places, tf.bool)
    return tf.tensor_scatter_nd_update(tf.fill([count], False), places[:, None], updates)
