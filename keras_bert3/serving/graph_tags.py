"""Words of texts and their labels inside a graph: what `TokenClassifier.label_words` does."""

import functools
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.data import words
from keras_bert3.serving import code_points, graph_windows
from keras_bert3.serving.graph_characters import look_up, paged
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_packing import GraphInputs, pack
from keras_bert3.serving.graph_pieces import previous
from keras_bert3.serving.graph_text import GRAPH_TOKENIZERS, pieces_have_graph
from keras_bert3.tasks.token_windows import TokenClassifierPreprocessor

_KINDS = ("nothing", "space", "letter", "sign")
_NOTHING, _, _LETTER, _SIGN = range(4)
_FAR = 2**40
"""More characters than a text has: places of all texts of a batch on one line."""


class Spans(NamedTuple):
    """Words of a batch of texts, one after the other: each int64 `[n]`.

    Args:
        rows: the text of each.
        starts: its first character.
        ends: the character after its last.
    """

    rows: Any
    starts: Any
    ends: Any


class TagWindows(NamedTuple):
    """Texts in rows, and where their words are.

    Args:
        inputs: of the network, `[w, q]`.
        spans: of the words.
        rows: int64 `[n]`, the row in which each word is read.
        columns: int64 `[n]`, the place of its first token there.
    """

    inputs: GraphInputs
    spans: Spans
    rows: Any
    columns: Any


def tags_have_graph(preprocessor) -> bool:
    """Whether texts can be prepared inside a graph as this preprocessor does."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    return type(preprocessor) is TokenClassifierPreprocessor and pieces_have_graph(tokenizer)


class GraphTags:
    """Reads texts in windows, each word in the one that shows most around it.

    Args:
        preprocessor: one for which `tags_have_graph`.
    """

    def __init__(self, preprocessor: TokenClassifierPreprocessor) -> None:
        tokenizer = preprocessor.tokenizer
        self.tokenize = GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)
        self.special = {name: getattr(tokenizer, name) for name in ("cls_id", "sep_id", "pad_id")}
        self.unknown_id = tokenizer.unknown_id
        self.longest_row = preprocessor.longest_row
        self.room, self.stride = preprocessor.room, preprocessor.stride

    def windows(self, texts) -> TagWindows:
        """Find words and their tokens, and cut texts into windows."""
        tf = tensorflow()

        spans = word_spans(texts)
        found = self._tokens(texts, spans)
        owners = tf.gather(spans.rows, found.words)
        count = tf.shape(texts)[0]
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(owners), owners, count)
        cuts = graph_windows.cut(lengths, tf.fill([count], np.int64(self.room)), self.stride)
        tokens = cuts.tokens
        parts = tokens.with_values(tf.gather(found.ids, tokens.values))
        inputs = pack(parts, None, self.longest_row, **self.special)
        places = tf.range(tf.size(tokens.values, out_type=tf.int64))
        best = tf.where(cuts.is_best, places, places.dtype.max)
        best = tf.math.unsorted_segment_min(best, tokens.values, tf.size(owners))
        at = tf.gather(best, found.first_tokens)
        return TagWindows(inputs, spans, tf.gather(cuts.rows, at), tf.gather(cuts.places, at) + 1)

    def _tokens(self, texts, spans: Spans) -> "_Tokens":
        """Tokenise texts; a word of which nothing is left becomes the unknown token."""
        tf = tensorflow()

        pieces = self.tokenize.pieces(texts)
        count = tf.size(spans.rows)
        # the word in which each token starts, or the next one of its text, or the last
        line = pieces.rows * _FAR + pieces.starts
        owners = tf.searchsorted(spans.rows * _FAR + spans.ends, line, "right", tf.int64)
        per_row = tf.math.unsorted_segment_sum(
            tf.ones_like(spans.rows), spans.rows, tf.shape(texts)[0]
        )
        owners = tf.minimum(owners, tf.gather(tf.cumsum(per_row), pieces.rows) - 1)
        kept = tf.where(tf.gather(per_row, pieces.rows) > 0)[:, 0]
        ids, owners = tf.gather(pieces.ids, kept), tf.gather(owners, kept)
        is_visible = tf.gather(pieces.starts < pieces.ends, kept)
        seen = tf.math.unsorted_segment_max(tf.cast(is_visible, tf.int32), owners, count)
        missing = tf.where(seen < 1)[:, 0]
        # a missing word's token stands before those of its own and later words
        moved = tf.range(tf.size(ids, out_type=tf.int64)) + tf.searchsorted(
            missing, owners, "right", tf.int64
        )
        new = tf.searchsorted(owners, missing, "left", tf.int64) + tf.range(
            tf.size(missing, out_type=tf.int64)
        )
        place = tf.concat([moved, new], 0)[:, None]
        total = tf.shape(place, tf.int64)[:1]
        unknown = tf.fill(tf.shape(missing), self.unknown_id)
        ids = tf.scatter_nd(place, tf.concat([ids, unknown], 0), total)
        owners = tf.scatter_nd(place, tf.concat([owners, missing], 0), total)
        is_visible = tf.concat([is_visible, tf.ones_like(missing, tf.bool)], 0)
        order = tf.where(is_visible, place[:, 0], place.dtype.max)
        owner = tf.gather(owners, place[:, 0])
        return _Tokens(ids, owners, tf.math.unsorted_segment_min(order, owner, count))

    def tags(self, texts, windows: TagWindows, logits, names) -> dict[str, Any]:
        """Label the words.

        Args:
            texts: string `[b]`.
            windows: of them.
            logits: `[w, q, c]`.
            names: of the classes.

        Returns:
            `word` and `label`, strings; `start` and `end`, in characters; `probability` of the
            label: each `[b, n]` for n words in the longest text, "" and 0 in shorter ones.
        """
        tf = tensorflow()

        rows, starts, ends = windows.spans
        chosen = tf.gather_nd(logits, tf.stack([windows.rows, windows.columns], 1))
        columns = {
            "word": tf.strings.substr(
                tf.gather(texts, rows), starts, ends - starts, unit="UTF8_CHAR"
            ),
            "label": tf.gather(tf.constant(names), tf.argmax(chosen, -1)),
            "start": starts,
            "end": ends,
            "probability": tf.reduce_max(tf.nn.softmax(chosen), -1),
        }
        counts = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, tf.shape(texts)[0])
        return {
            name: tf.RaggedTensor.from_row_lengths(column, counts, validate=False).to_tensor()
            for name, column in columns.items()
        }


class _Tokens(NamedTuple):
    """Ids of all texts `[t]`, the word of each `[t]`, the first token of each word `[n]`."""

    ids: Any
    words: Any
    first_tokens: Any


@functools.cache
def _kinds() -> tuple[np.ndarray, np.ndarray]:
    """What each code point is to `data.words.word_spans`, as a `paged` table."""
    number = {kind: index for index, kind in enumerate(_KINDS)}
    found = np.full(code_points.POINTS, _LETTER, "int32")  # those that are no characters too
    points = code_points.probed()
    found[list(points)] = [number[words._kind(chr(point))] for point in points]
    return paged(found)


def word_spans(texts) -> Spans:
    """Find the words of texts; see `data.words.word_spans`."""
    tf = tensorflow()

    decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
    rows = decoded.value_rowids()
    kinds = look_up(_kinds(), decoded.values)
    places = tf.range(tf.size(rows, out_type=tf.int64)) - tf.gather(decoded.row_starts(), rows)
    kept = tf.where(kinds != _NOTHING)[:, 0]  # a word goes on across them
    kinds, rows, places = (tf.gather(values, kept) for values in (kinds, rows, places))
    is_letter = kinds == _LETTER
    starts = (kinds == _SIGN) | (is_letter & (previous(kinds, rows, -1) != _LETTER))
    owners = tf.cumsum(tf.cast(starts, tf.int64)) - 1
    is_inside = is_letter | (kinds == _SIGN)
    count = tf.reduce_sum(tf.cast(starts, tf.int64))
    ends = tf.where(is_inside, places + 1, 0)
    # spaces behind a word count to it here, and have 0 for an end; before the first, -1 is dropped
    ends = tf.math.unsorted_segment_max(ends, owners, count)
    first = tf.where(starts)[:, 0]
    return Spans(tf.gather(rows, first), tf.gather(places, first), ends)
