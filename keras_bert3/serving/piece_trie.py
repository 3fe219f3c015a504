"""A vocabulary of word pieces as four arrays, to be walked by many characters at once.

A trie whose nodes are numbers. The child of node n for symbol s stands at `base[n] + s`, and is n's
if `owner[base[n] + s] == n`: a double array (Aoe 1989, "An efficient digital search algorithm by
using a double-array structure"), which costs two look-ups a character and no search.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

WORD, CONTINUATION, DEAD = 0, 1, 2
"""The nodes where a word's first piece begins, where its other pieces do, and where nothing is."""


@dataclasses.dataclass(frozen=True)
class PieceTrie:
    """The arrays.

    Args:
        base: int32 `[n]`, where a node's children are looked for.
        owner: int32 `[n]`, whose child a node is; -1 where there is no node.
        piece: int32 `[n]`, the id of the piece that ends at a node; -1 where none does.
        symbols: the number of each character, from 1; 0 ends words.
        depth: characters of the longest piece.
    """

    base: np.ndarray
    owner: np.ndarray
    piece: np.ndarray
    symbols: dict[str, int]
    depth: int

    @property
    def other(self) -> int:
        """The symbol of all characters that no piece has."""
        return len(self.symbols) + 1


def build(words: Iterable[tuple[str, int]], continuations: Iterable[tuple[str, int]]) -> PieceTrie:
    """Put pieces into a trie.

    Args:
        words: first pieces of words, with their ids.
        continuations: other pieces, without a prefix, with their ids.

    Example: `build([("un", 0)], [("able", 1)]).depth` is 4.
    """
    roots = {WORD: [*words], CONTINUATION: [*continuations]}
    letters = sorted({c for pieces in roots.values() for text, _ in pieces for c in text})
    symbols = {letter: number for number, letter in enumerate(letters, 1)}
    children: list[dict[int, int]] = [{}, {}]
    ends: dict[int, int] = {}
    depth = 0
    for root, pieces in roots.items():
        for text, index in pieces:
            node = root
            for letter in text:
                node = children[node].setdefault(symbols[letter], len(children))
                if node == len(children):
                    children.append({})
            if text:
                ends[node] = index
                depth = max(depth, len(text))
    base, owner, piece = _place(children, ends, len(symbols) + 2)
    return PieceTrie(base, owner, piece, symbols, depth)


def _place(children: list[dict[int, int]], ends: dict[int, int], width: int):
    """Find each node a place where its children's places are free, those with most first."""
    place = {WORD: WORD, CONTINUATION: CONTINUATION}
    taken = {WORD, CONTINUATION, DEAD}
    base, owner = {}, {}
    free = DEAD + 1
    # parents before children, or an owner would have no place yet; wide ones while there is room
    layer = [WORD, CONTINUATION]
    while layer:
        for node in sorted(layer, key=lambda node: -len(children[node])):
            if not children[node]:
                continue
            offsets = sorted(children[node])
            while free in taken:
                free += 1
            start = free - offsets[0]
            while start < 0 or any(start + offset in taken for offset in offsets):
                start += 1
            base[place[node]] = start
            for offset in offsets:
                place[children[node][offset]] = start + offset
                owner[start + offset] = place[node]
                taken.add(start + offset)
        layer = [child for node in layer for child in children[node].values()]
    return _arrays(max(taken), width, base, owner, {place[node]: i for node, i in ends.items()})


def _arrays(last: int, width: int, base: dict, owner: dict, ends: dict):
    """Write dicts as arrays, long enough for any base with any symbol."""
    size = max(last, max(base.values(), default=0)) + width + 1
    arrays = []
    for values, default in ((base, 0), (owner, -1), (ends, -1)):
        array = np.full(size, default, "int32")
        array[list(values)] = list(values.values())
        arrays.append(array)
    return arrays
