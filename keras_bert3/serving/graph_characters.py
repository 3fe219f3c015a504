"""Texts as characters inside a graph: BERT's basic tokenization, through a table of code points."""

import functools
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.serving import code_points, symbol_table
from keras_bert3.serving.graph_library import tensorflow


class Characters(NamedTuple):
    """Symbols of a batch of texts one after the other, spaces between words included.

    A space follows each text and keeps it from the next one.

    Args:
        symbols: int32 `[n]`, see `SymbolTable`.
        rows: int64 `[n]`, the text each belongs to.
        places: int64 `[n]`, the character of the text it comes from.
    """

    symbols: Any
    rows: Any
    places: Any


class GraphCharacters:
    """Clean, fold and part texts, inside a `tf.function`.

    Args:
        points: what becomes of code points.
        symbols: the number of each character that is told from others.
        other: the number of all others.

    Call arguments:
        texts: string `[b]`, UTF-8. Anything else ends the call with InvalidArgument.

    Returns:
        `Characters`.
    """

    def __init__(self, points: code_points.CodePoints, symbols: dict[str, int], other: int) -> None:
        self.points = points
        self.table = symbol_table.build(points, symbols, other)

    def __call__(self, texts) -> Characters:
        """Return the characters of texts."""
        tf = tensorflow()

        decoded = tf.strings.unicode_decode(texts + " ", "UTF-8", errors="strict")
        rows = decoded.value_rowids()
        found = self._symbols(self._settle_final_sigmas(decoded.values, rows), rows)
        places = found.places - tf.gather(decoded.row_starts(), found.rows)
        return found._replace(places=places)

    def _settle_final_sigmas(self, values, rows):
        """Give capital sigmas at the ends of words the code point of a final one (`str.lower`)."""
        tf = tensorflow()

        if not self.points.cased:
            return values
        cased, hidden = (
            functools.partial(look_up, point_set(which))
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

    def _symbols(self, values, code_point_rows) -> Characters:
        """Replace code points by their symbols."""
        tf = tensorflow()

        table = self.table
        entry = look_up((table.page_of, table.pages), values)
        first = tf.gather(table.first, entry)
        found = tf.ragged.range(first, first + tf.gather(table.count, entry))
        places, symbols = found.value_rowids(), tf.gather(table.symbols, found.values)
        if table.order.any():
            order = tf.gather(table.order, found.values)
            moved = _canonical_order(order, tf.gather(code_point_rows, places))
            symbols, places = tf.gather(symbols, moved), tf.gather(places, moved)
        kept = tf.where(symbols != symbol_table.BARRIER)[:, 0]
        places = tf.gather(places, kept)
        return Characters(tf.gather(symbols, kept), tf.gather(code_point_rows, places), places)


def paged(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write a value for each code point as pages, equal ones once: which page, and the pages."""
    pages, page_of = np.unique(values.reshape(-1, symbol_table.PAGE), axis=0, return_inverse=True)
    return page_of.reshape(-1).astype("int32"), pages


def look_up(table, values):
    """Return the value of each code point in a `paged` table."""
    tf = tensorflow()

    page_of, pages = table
    page = tf.gather(page_of, values // symbol_table.PAGE)
    return tf.gather_nd(pages, tf.stack([page, values % symbol_table.PAGE], 1))


@functools.cache
def point_set(members: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
    """Write a set of code points as a `paged` table of truth values."""
    flags = np.zeros(code_points.POINTS, bool)
    flags[list(members)] = True
    return paged(flags)


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
