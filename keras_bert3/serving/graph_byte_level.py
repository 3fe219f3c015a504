"""Byte-level byte-pair encoding as a graph of core operations: DeBERTa v1's tokenizer."""

import functools

import numpy as np
from tokenizers import pre_tokenizers

from keras_bert3.serving import code_points
from keras_bert3.serving.graph_byte_pair import GraphMerges
from keras_bert3.serving.graph_characters import look_up, paged, point_set
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_pieces import (
    GraphTokenizer,
    Pieces,
    flags_at,
    following,
    previous,
)
from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS
from keras_bert3.tokenizers.byte_level_byte_pair import ByteLevelBytePairTokenizer

LETTER, NUMBER, SIGN, SPACE = range(4)
"""Kinds of characters to the pattern that GPT-2 cuts texts by (openai/gpt-2 `encoder.py`)."""
_BLANK, _APOSTROPHE = ord(" "), ord("'")
_SHORT, _LONG = "stmd", ("re", "ve", "ll")
"""What makes a word of its own behind an apostrophe."""
_CHUNK = 512


class GraphByteLevel(GraphTokenizer):
    """Cut texts into the ids of a `ByteLevelBytePairTokenizer`, inside a `tf.function`.

    Args:
        tokenizer: the tokenizer to equal.

    Call arguments:
        texts: see `GraphTokenizer`. A word of more than `graph_byte_pair.LONGEST_WORD` bytes ends
            the call too.
    """

    def __init__(self, tokenizer: ByteLevelBytePairTokenizer) -> None:
        ids = {token: index for index, token in enumerate(tokenizer.vocabulary)}
        self.byte_ids = np.array([ids[character] for character in BYTE_CHARACTERS], "int32")
        self.merges = GraphMerges(ids, tokenizer.merges)
        self.add_prefix_space = tokenizer.add_prefix_space
        self.kinds = kinds()
        self.spaces = point_set(_python_spaces())

    def _pieces(self, texts) -> Pieces:
        tf = tensorflow()

        shift = tf.zeros_like(texts, tf.int64)
        if self.add_prefix_space:
            is_added = (texts != "") & (tf.strings.substr(texts + " ", 0, 1) != " ")
            texts = tf.where(is_added, " ", "") + texts
            shift = tf.cast(is_added, tf.int64)
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
        values, rows = decoded.values, decoded.value_rowids()
        words = tf.cumsum(tf.cast(self._word_starts(values, rows), tf.int64)) - 1
        owners, bytes_ = _utf8(values)
        joined = self.merges(tf.gather(self.byte_ids, bytes_), tf.gather(words, owners))
        ends = tf.concat([joined.firsts, [tf.size(owners, out_type=tf.int64)]], 0)[1:]
        piece_rows = tf.gather(rows, tf.gather(owners, joined.firsts))
        begin = tf.gather(decoded.row_starts() + shift, piece_rows)
        first = tf.maximum(tf.gather(owners, joined.firsts), begin)
        end = tf.maximum(tf.gather(owners, ends - 1), begin) + 1
        first, end = _visible(~look_up(self.spaces, values), first, end)
        return Pieces(joined.ids, piece_rows, starts=first - begin, ends=end - begin)

    def _word_starts(self, values, rows):
        """Whether the pattern begins a match at a character: bool `[n]`."""
        tf = tensorflow()

        kinds = look_up(self.kinds, values)
        is_space = kinds == SPACE
        before, after = previous(kinds, rows, -1), following(kinds, rows, -1)
        # of several spaces all but the last are a match; a blank belongs to what follows
        space_starts = (before != SPACE) | ((after != SPACE) & (after >= 0))
        is_behind_blank = previous(values, rows, -1) == _BLANK
        starts = tf.where(is_space, space_starts, (before != kinds) & ~is_behind_blank)
        return self._with_contractions(values, rows, starts)

    def _with_contractions(self, values, rows, starts):
        """Make matches of "'s" and its like, where a match begins with the apostrophe."""
        tf = tensorflow()

        def settle():
            begins = starts & (values == _APOSTROPHE)
            one, two = (following(values, rows, -1, by) for by in (1, 2))
            is_short = begins & _is_any([one == ord(letter) for letter in _SHORT])
            pairs = [(one == ord(a)) & (two == ord(b)) for a, b in _LONG]
            is_long = begins & _is_any(pairs)
            count = tf.size(values)
            found = tf.where(is_short | is_long)[:, 0]
            ends = found + tf.cast(tf.where(tf.gather(is_long, found), 3, 2), tf.int64)
            is_inside = flags_at(found + 1, count)
            is_new = flags_at(ends, count)
            return (starts & ~is_inside) | is_new

        return tf.cond(tf.reduce_any(values == _APOSTROPHE), settle, lambda: starts)


@functools.cache
def _python_spaces() -> frozenset[int]:
    """What `str.strip` takes away."""
    return frozenset(point for point in range(0x3001) if chr(point).isspace())


@functools.cache
def kinds() -> tuple[np.ndarray, np.ndarray]:
    """Ask the tokenizer's own first stage for the kind of each code point: a `paged` table.

    Characters between two letters that are not cut from them are letters, and so for numbers and
    signs; what is cut from all of them is space. Planes without characters are signs.
    """
    found = np.full(code_points.POINTS, SIGN, "int32")
    points = code_points.probed()
    rest = [points[i : i + _CHUNK] for i in range(0, len(points), _CHUNK)]
    while rest:
        chunk = rest.pop()
        kind = _kind_of_all("".join(map(chr, chunk)))
        if kind is None and len(chunk) > 1:
            rest += [chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]]
        else:
            found[list(chunk)] = SPACE if kind is None else kind
    return paged(found)


def _kind_of_all(characters: str) -> int | None:
    """Return the kind that all characters have in common, if it is not space."""
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    for kind, like in ((LETTER, "a"), (NUMBER, "1"), (SIGN, "!")):
        if len(cut(like + characters + like)) == 1:
            return kind
    return None


def _is_any(conditions):
    return functools.reduce(lambda a, b: a | b, conditions)


def _utf8(values):
    """Spell code points in bytes: the character of each byte int64 `[n]`, and the bytes."""
    tf = tensorflow()

    sizes = 1 + sum(tf.cast(values >= least, tf.int64) for least in (0x80, 0x800, 0x10000))
    spelled = tf.RaggedTensor.from_row_lengths(
        tf.range(tf.reduce_sum(sizes)), sizes, validate=False
    )
    owners = spelled.value_rowids()
    place = spelled.values - tf.gather(spelled.row_starts(), owners)
    size = tf.gather(sizes, owners)
    shift = tf.gather(np.array([1, 64, 64**2, 64**3], "int32"), size - 1 - place)
    lead = tf.gather(np.array([0, 0, 0xC0, 0xE0, 0xF0], "int32"), size)
    high = tf.gather(values, owners) // shift
    return owners, tf.where(place == 0, lead + high, 0x80 + high % 64)


def _visible(is_visible, first, end):
    """Narrow stretches of characters to what is not space; space alone becomes its end, twice."""
    tf = tensorflow()

    seen = tf.pad(tf.where(is_visible)[:, 0], [[0, 1]])
    before = tf.pad(tf.cumsum(tf.cast(is_visible, tf.int64)), [[1, 0]])
    low, high = tf.gather(before, first), tf.gather(before, end)
    has_any = high > low
    start = tf.where(has_any, tf.gather(seen, low), end)
    return start, tf.where(has_any, tf.gather(seen, tf.maximum(high - 1, 0)) + 1, end)
