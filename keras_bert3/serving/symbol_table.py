"""Code points to symbols of a `PieceTrie`, through what basic tokenization makes of them."""

import dataclasses

import numpy as np

from keras_bert3.serving.code_points import POINTS, CodePoints

SPACE, BARRIER = 0, -1
"""Symbols that are no characters: the end of words; a dropped mark that keeps others apart."""
PAGE = 128
"""Code points of a page; most pages are alike, and are stored once."""


@dataclasses.dataclass(frozen=True)
class SymbolTable:
    """Arrays that give each code point its list of symbols.

    The list of code point c is `symbols[first : first + count]` where `first` and `count` are of
    entry `pages[page_of[c // PAGE], c % PAGE]`.

    Args:
        page_of: int32 `[8704]`.
        pages: int32 `[p, 128]`.
        first: int32 `[e]`.
        count: int32 `[e]`.
        symbols: int32 `[s]`; an ordinary one, `SPACE` or `BARRIER`.
        order: int32 `[s]`: canonical combining classes, 0 for what is never reordered.
    """

    page_of: np.ndarray
    pages: np.ndarray
    first: np.ndarray
    count: np.ndarray
    symbols: np.ndarray
    order: np.ndarray


def build(points: CodePoints, symbols: dict[str, int], other: int) -> SymbolTable:
    """Build the arrays.

    Args:
        points: what becomes of code points.
        symbols: the symbol of each character that some piece has.
        other: the symbol of all the others.
    """

    def entry(text: str) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        for character in text:
            symbol = (symbols.get(character, other), points.mark_classes.get(character, 0))
            if character in points.spaces:
                found.append((SPACE, 0))
            elif character in points.alone:
                found += [(SPACE, 0), symbol, (SPACE, 0)]
            else:
                found.append(symbol)
        return tuple(found)

    numbers: dict[tuple[tuple[int, int], ...], int] = {((other, 0),): 0}
    entry_of = np.zeros(POINTS, "int32")
    special = {*symbols, *points.spaces, *points.alone, *points.mark_classes}
    texts = {ord(character): character for character in special} | points.changed
    for point, text in texts.items():
        mine = ((BARRIER, 0),) if point in points.barriers else entry(text)
        entry_of[point] = numbers.setdefault(mine, len(numbers))
    pages, page_of = np.unique(entry_of.reshape(-1, PAGE), axis=0, return_inverse=True)
    counts = np.array([len(one) for one in numbers], "int32")
    flat = np.array([pair for one in numbers for pair in one], "int32").reshape(-1, 2)
    return SymbolTable(
        page_of=page_of.reshape(-1).astype("int32"),
        pages=pages,
        first=(np.cumsum(counts) - counts).astype("int32"),
        count=counts,
        symbols=flat[:, 0].copy(),
        order=flat[:, 1].copy(),
    )
