"""WordPiece as a TensorFlow graph of core operations, equal to `WordPieceTokenizer`.

    text --UnicodeDecode--> code points --table--> symbols --trie--> pieces

Every character of a batch is treated at once: from each, the trie finds the longest piece that
could begin there; then each word hops from its first character to where the piece ends, and on,
until it ends itself. No operation of tensorflow-text is needed, so any server can run it.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_bert3.serving import code_points, piece_trie, symbol_table
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.tokenizers.vocabulary import CONTINUATION
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer


class Pieces(NamedTuple):
    """Pieces of a batch of texts, one after the other.

    Args:
        ids: int32 `[p]`.
        rows: int64 `[p]`, the text each belongs to.
        starts: int64 `[p]`, its first character in the text.
        ends: int64 `[p]`, the character after its last.
        word_starts: bool `[p]`, whether a word begins with it.
    """

    ids: Any
    rows: Any
    starts: Any
    ends: Any
    word_starts: Any


class _Characters(NamedTuple):
    """Symbols of a batch of texts, spaces included: each `[n]`."""

    symbols: Any
    rows: Any
    places: Any


class _Words(NamedTuple):
    """Words of a batch of texts, counted from 1; 0 is for what stands before the first.

    Args:
        owner: int32 `[n]`, the word of each character.
        starts: bool `[n]`, whether a word begins at it.
        ends: int64 `[w + 1]`, the character after each word's last.
        too_long: bool `[w + 1]`, whether a word has more characters than a word may.
    """

    owner: Any
    starts: Any
    ends: Any
    too_long: Any


class GraphWordPiece:
    """Cut texts into the ids of a `WordPieceTokenizer`, inside a `tf.function`.

    A literal "[SEP]" or "[MASK]" in a text is text, whatever `special_tokens_in_text` says: whoever
    sends strings to a server cannot put special tokens into them.

    Args:
        tokenizer: the tokenizer to equal, of any settings and vocabulary.

    Call arguments:
        texts: string `[b]`, UTF-8. Anything else ends the call with InvalidArgument.

    Returns:
        A ragged int32 tensor `[b, None]`.

    Example:
        >>> GraphWordPiece(tokenizer)(tf.constant(["Unaffable!"])).to_list()
        [[5, 6, 7, 8]]
    """

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        accents = tokenizer.strip_accents
        accents = tokenizer.lowercase if accents is None else accents
        self.points = code_points.probe(
            tokenizer.lowercase, accents, tokenizer.split_chinese_characters
        )
        pieces = [(text, index) for index, text in enumerate(tokenizer.vocabulary)]
        mark = CONTINUATION
        self.trie = piece_trie.build(
            [piece for piece in pieces if not piece[0].startswith(mark)],
            [(text[len(mark) :], index) for text, index in pieces if text.startswith(mark)],
        )
        self.table = symbol_table.build(self.points, self.trie.symbols, self.trie.other)
        self.unknown_id = tokenizer.unknown_id
        self.max_word_length = tokenizer.max_word_length

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

    def _pieces(self, texts) -> Pieces:
        tf = tensorflow()

        # a space after each text keeps it from the next one
        decoded = tf.strings.unicode_decode(texts + " ", "UTF-8", errors="strict")
        code_point_rows = decoded.value_rowids()
        values = self._settle_final_sigmas(decoded.values, code_point_rows)
        characters = self._characters(values, code_point_rows)
        words = _words(characters.symbols, self.max_word_length)
        lengths, ids = self._longest_pieces(characters.symbols, words.starts)
        reached = _hop(characters.symbols, lengths, words)
        failures = tf.cast(reached & (lengths == 0), tf.int32)
        failed = tf.math.unsorted_segment_max(failures, words.owner, tf.size(words.ends)) > 0
        is_known = tf.gather(~(failed | words.too_long), words.owner)
        kept = tf.where((reached & is_known) | (words.starts & ~is_known))[:, 0]
        is_known = tf.gather(is_known, kept)
        piece_ends = kept + tf.cast(tf.gather(lengths, kept), tf.int64)
        word_ends = tf.gather(words.ends, tf.gather(words.owner, kept))
        last = tf.where(is_known, piece_ends, word_ends) - 1
        places = characters.places - tf.gather(decoded.row_starts(), characters.rows)
        return Pieces(
            ids=tf.where(is_known, tf.gather(ids, kept), self.unknown_id),
            rows=tf.gather(characters.rows, kept),
            starts=tf.gather(places, kept),
            ends=tf.gather(places, last) + 1,
            word_starts=tf.gather(words.starts, kept),
        )

    def _settle_final_sigmas(self, values, rows):
        """Give capital sigmas at the ends of words the code point of a final one (`str.lower`)."""
        tf = tensorflow()

        if not self.points.cased:
            return values
        cased, hidden = (
            functools.partial(_contains, _bits(which))
            for which in (self.points.cased, self.points.case_ignorable | self.points.cleaned)
        )

        def settle():
            seen = tf.where(~hidden(values))[:, 0]
            letters, owners = tf.gather(values, seen), tf.gather(rows, seen)
            is_cased = cased(letters)
            same_row = owners[1:] == owners[:-1]
            none = tf.zeros_like(is_cased[:1])
            after = tf.concat([none, is_cased[:-1] & same_row], 0)
            before = tf.concat([is_cased[1:] & same_row, none], 0)
            final = (letters == code_points.SIGMA) & after & ~before
            where = tf.boolean_mask(seen, final)[:, None]
            updates = tf.fill(tf.shape(where)[:1], code_points.FINAL_SIGMA)
            return tf.tensor_scatter_nd_update(values, where, updates)

        return tf.cond(tf.reduce_any(values == code_points.SIGMA), settle, lambda: values)

    def _characters(self, values, code_point_rows) -> _Characters:
        """Replace code points by their symbols."""
        tf = tensorflow()

        table = self.table
        page = tf.gather(table.page_of, values // symbol_table.PAGE)
        entry = tf.gather_nd(table.pages, tf.stack([page, values % symbol_table.PAGE], 1))
        first = tf.gather(table.first, entry)
        found = tf.ragged.range(first, first + tf.gather(table.count, entry))
        places, symbols = found.value_rowids(), tf.gather(table.symbols, found.values)
        if table.order.any():
            order = tf.gather(table.order, found.values)
            moved = _canonical_order(order, tf.gather(code_point_rows, places))
            symbols, places = tf.gather(symbols, moved), tf.gather(places, moved)
        kept = tf.where(symbols != symbol_table.BARRIER)[:, 0]
        places = tf.gather(places, kept)
        return _Characters(tf.gather(symbols, kept), tf.gather(code_point_rows, places), places)

    def _longest_pieces(self, symbols, starts):
        """Return the length and id of the longest piece at each character; 0 and -1 for none."""
        tf = tensorflow()

        trie = self.trie
        count = tf.shape(symbols)[0]
        padded = tf.pad(symbols, [[0, trie.depth]])
        is_space = symbols == symbol_table.SPACE
        roots = tf.where(starts, piece_trie.WORD, piece_trie.CONTINUATION)
        nodes = tf.where(is_space, piece_trie.DEAD, roots)

        def walk(step, nodes, lengths, ids):
            following = tf.gather(trie.base, nodes) + padded[step : step + count]
            is_child = tf.gather(trie.owner, following) == nodes
            nodes = tf.where(is_child, following, piece_trie.DEAD)
            ending = tf.gather(trie.piece, nodes)
            ids = tf.where(ending >= 0, ending, ids)
            return step + 1, nodes, tf.where(ending >= 0, step + 1, lengths), ids

        _, _, lengths, ids = tf.while_loop(
            lambda step, nodes, *_: tf.reduce_any(nodes != piece_trie.DEAD),
            walk,
            (0, nodes, tf.zeros_like(symbols), tf.fill([count], -1)),
            maximum_iterations=trie.depth,
        )
        return lengths, ids


def _bits(members: frozenset[int]):
    """Write a set of code points as pages of truth values: which page, and the pages."""
    import numpy as np

    flags = np.zeros(code_points.POINTS, bool)
    flags[list(members)] = True
    pages, page_of = np.unique(flags.reshape(-1, symbol_table.PAGE), axis=0, return_inverse=True)
    return page_of.reshape(-1).astype("int32"), pages


def _contains(bits, values):
    """Whether each code point is in a set."""
    tf = tensorflow()

    page_of, pages = bits
    page = tf.gather(page_of, values // symbol_table.PAGE)
    return tf.gather_nd(pages, tf.stack([page, values % symbol_table.PAGE], 1))


def _canonical_order(order, rows):
    """Return in which order symbols stand once marks are sorted by class, run by run."""
    tf = tensorflow()

    count = tf.size(order, out_type=tf.int64)

    def sort():
        is_first = tf.concat([[True], rows[1:] != rows[:-1]], 0)
        runs = tf.cumsum(tf.cast((order == 0) | is_first, tf.int64))
        return tf.argsort(runs * 256 + tf.cast(order, tf.int64), stable=True)

    # only marks next to one another can change places
    is_needed = tf.reduce_any((order[1:] > 0) & (order[:-1] > order[1:]))
    return tf.cond(is_needed, lambda: tf.cast(sort(), tf.int64), lambda: tf.range(count))


def _words(symbols, max_word_length: int) -> _Words:
    """Find the words."""
    tf = tensorflow()

    is_letter = symbols != symbol_table.SPACE
    starts = is_letter & ~tf.concat([[False], is_letter[:-1]], 0)
    begins = tf.where(starts)[:, 0]
    ends = tf.where(is_letter & ~tf.concat([is_letter[1:], [False]], 0))[:, 0] + 1
    return _Words(
        owner=tf.cumsum(tf.cast(starts, tf.int32)),
        starts=starts,
        ends=tf.pad(ends, [[1, 0]]),
        too_long=tf.pad(ends - begins, [[1, 0]]) > max_word_length,
    )


def _hop(symbols, lengths, words: _Words):
    """Return which characters pieces begin at, from each word's first as far as there are any."""
    tf = tensorflow()

    def hop(front, reached):
        front = front + tf.cast(tf.gather(lengths, front), tf.int64)
        is_new = (tf.gather(symbols, front) != symbol_table.SPACE) & ~tf.gather(reached, front)
        front = tf.boolean_mask(front, is_new)
        updates = tf.ones_like(front, tf.bool)
        return front, tf.tensor_scatter_nd_update(reached, front[:, None], updates)

    begins = tf.where(words.starts & ~tf.gather(words.too_long, words.owner))[:, 0]
    _, reached = tf.while_loop(
        lambda front, reached: tf.size(front) > 0,
        hop,
        (begins, words.starts),
        shape_invariants=(tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return reached
