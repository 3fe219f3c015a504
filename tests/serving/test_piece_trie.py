import numpy as np

from keras_bert3.serving import piece_trie, symbol_table
from keras_bert3.serving.code_points import CodePoints
from keras_bert3.serving.piece_trie import CONTINUATION, DEAD, WORD

NONE = frozenset()


def walk(trie, root, text):
    """Follow one text through the arrays; return the id of the piece that it is, or -1."""
    node = root
    for letter in text:
        place = trie.base[node] + trie.symbols.get(letter, trie.other)
        node = place if trie.owner[place] == node else DEAD
    return trie.piece[node]


def test_exactly_the_pieces_are_found_at_their_roots():
    rng = np.random.default_rng(2)
    texts = {"".join(rng.choice([*"abcdefgh中"], rng.integers(1, 9))) for _ in range(3000)}
    words = [(text, i) for i, text in enumerate(sorted(texts)) if i % 3]
    rest = [(text, i) for i, text in enumerate(sorted(texts)) if i % 2]
    trie = piece_trie.build(words, rest)
    for root, pieces in ((WORD, dict(words)), (CONTINUATION, dict(rest))):
        for text in sorted(texts):
            assert walk(trie, root, text) == pieces.get(text, -1)
            assert walk(trie, root, text + "x") == -1
    assert trie.depth == 8
    assert trie.base[DEAD] == 0 and DEAD not in trie.owner


def test_no_pieces_at_all():
    trie = piece_trie.build([], [("", 3)])
    assert walk(trie, WORD, "a") == walk(trie, CONTINUATION, "a") == -1


def symbols_of(table, character):
    point = ord(character)
    entry = table.pages[table.page_of[point // symbol_table.PAGE], point % symbol_table.PAGE]
    start = table.first[entry]
    return table.symbols[start : start + table.count[entry]].tolist()


def test_code_points_become_symbols():
    points = CodePoints(
        {ord("É"): "e", ord("\x00"): "", ord("\u0e31"): ""},
        frozenset(" "),
        frozenset("!"),
        {"\u302e": 224},
        frozenset([0x0E31]),
        *[NONE] * 3,
    )
    table = symbol_table.build(points, {"a": 1, "e": 2}, 3)
    expected = {"a": [1], "É": [2], "z": [3], " ": [0], "!": [0, 3, 0], "\x00": [], "\u302e": [3]}
    assert {c: symbols_of(table, c) for c in expected} == expected
    assert symbols_of(table, "\u0e31") == [symbol_table.BARRIER]
    assert symbols_of(table, "\U0010ffff") == [3]
    assert len(table.pages) < 6
    assert sorted(table.order.tolist())[-2:] == [0, 224]
