import functools
import random

import keras
import pytest

from keras_bert3.serving.code_points import probe
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.tokenizers.test_word_piece import FUZZ, PIECES

tf = pytest.importorskip("tensorflow", exc_type=ImportError)
if keras.backend.backend() != "tensorflow":
    pytest.skip("the graph is TensorFlow's, whatever the backend", allow_module_level=True)

from keras_bert3.serving.graph_word_piece import GraphWordPiece  # noqa: E402

# Beyond the fuzz of the tokenizer itself: sigmas and what may stand around them, marks that stay
# and change places, dropped marks that keep them apart, and characters outside every table.
MORE = [
    *["Σ", "ΑΣ", "ΣΑ", "Σ'", "Σ\u00ad", "Σ\u0301", "ΌΣ.", "ʰΣ", "Σʰ", "Σ\x00", "A\u200bΣ", "ς"],
    *["\u302e", "\U0001d165", "\U00016ff0", "\u0e31", "\u0301", "\U0001d15e", "\U0001d160"],
    *["\u1b44", "\ua953", "각", "\u1100\u1161", "ḍ̇", "\u0344", "ﷺ", "\u1e9e", "ŉ", "ΐ"],
    *["\U0003ffff", "\U000f0000", "\U0010ffff", "\uffff", "\ufdd0", "\u0378", "\U000e0041"],
    *["ɐ", "Ⱥ", "\u2c2f", "\ua7c0", "\U00010570", "Ａ", "①", "١", "क्षि", "ที่", "[SEP]", "[PAD]"],
]


def texts_of(count, seed):
    generator = random.Random(seed)
    return [
        "".join(generator.choices([*FUZZ, *MORE, *PIECES], k=generator.randint(0, 24)))
        for _ in range(count)
    ]


@functools.cache
def pair(**settings):
    tokenizer = WordPieceTokenizer(
        [*PIECES, *"σ ς ##σ ##ς \u302e ##\U0001d165".split()], **settings
    )
    return tokenizer, GraphWordPiece(tokenizer).pieces


def ids_of(texts, function):
    pieces = function(tf.constant(texts, tf.string, [len(texts)]))
    rows = [[] for _ in texts]
    for row, index in zip(pieces.rows.numpy(), pieces.ids.numpy(), strict=True):
        rows[row].append(int(index))
    return rows


@pytest.mark.parametrize("lowercase", [True, False])
def test_adversarial_texts_give_the_ids_of_the_python_path(lowercase):
    tokenizer, function = pair(lowercase=lowercase)
    texts = texts_of(3500, 7 + lowercase)
    expected = tokenizer(texts)
    found = ids_of(texts, function)
    wrong = [text for text, a, b in zip(texts, expected, found, strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:3])
    assert len({index for row in expected for index in row}) > 45


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_code_point_gives_the_ids_of_the_python_path(lowercase):
    letters = "αβγδ あいう 中国 éèäöüßñ őě žš кириллица 가각 αΐ \u302e \U0001d165 Ａ ﬁ İ ı".split()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "##x"]
    vocabulary += sorted({c for word in letters for c in word})
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    function = GraphWordPiece(tokenizer).pieces
    # planes with no character at all are stepped through
    points = [*range(0x20000), *range(0x20000, 0x110000, 97), *range(0x2F800, 0x2FA20)]
    texts = [f"x{chr(c)}x {chr(c)}" for c in points if not 0xD800 <= c < 0xE000]
    for first in range(0, len(texts), 70000):
        part = texts[first : first + 70000]
        joined = ["".join(part[i : i + 100]) for i in range(0, len(part), 100)]
        if ids_of(joined, function) == tokenizer(joined):
            continue
        assert ids_of(part, function) == tokenizer(part)


@pytest.mark.parametrize(
    "settings",
    [
        {"strip_accents": False, "special_tokens_in_text": True},
        {"lowercase": False, "strip_accents": True},
        {"split_chinese_characters": False, "max_word_length": 3},
    ],
)
def test_other_settings(settings):
    tokenizer, function = pair(**settings)
    texts = texts_of(300, 3)
    if tokenizer.special_tokens_in_text:  # a server never reads special tokens out of texts
        assert tokenizer.tokenize("[MASK]") == ["[MASK]"]
        plain = {**settings, "special_tokens_in_text": False}
        tokenizer = WordPieceTokenizer(tokenizer.vocabulary, **plain)
    assert ids_of(texts, function) == tokenizer(texts)


def test_offsets_are_those_of_the_python_path():
    tokenizer, function = pair(lowercase=False)
    texts = texts_of(300, 5)
    pieces = function(tf.constant(texts))
    found = {}
    for row, *span in zip(*(part.numpy() for part in pieces[1:4]), strict=True):
        found.setdefault(int(row), []).append((int(span[0]), int(span[1])))
    expected = {i: tokenizer.encode_with_offsets(text)[1] for i, text in enumerate(texts)}
    assert found == {row: spans for row, spans in expected.items() if spans}


def test_added_tokens_have_no_graph():
    tokenizer = WordPieceTokenizer(PIECES, added_tokens=["[E1]", "[/E1]"])
    with pytest.raises(ValueError, match=r"without added tokens. Received: \[E1\], \[/E1\]"):
        GraphWordPiece(tokenizer)


def test_no_text_and_empty_texts():
    _, function = pair(lowercase=True)
    assert ids_of([], function) == []
    assert ids_of(["", " ", "\x00"], function) == [[], [], []]
    assert ids_of(["", "hello", ""], function) == [[], [5], []]


def test_bytes_that_are_not_utf8_end_the_call():
    _, function = pair(lowercase=True)
    for broken in (b"\xff", b"a\xc3", b"\xed\xa0\x80"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
            function(tf.constant([broken]))


def test_a_megabyte_is_no_trouble():
    tokenizer, function = pair(lowercase=True)
    for text in ("a" * 10**6, "hello " * 170000):
        assert ids_of([text], function) == [tokenizer(text)]


def test_V1_every_operation_is_of_core_tensorflow():
    _, function = pair(lowercase=True)
    graph = function.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    names = {node.op for node in nodes}
    assert "UnicodeDecode" in names
    assert not {name for name in names if name.startswith(("TFText", "Fast", "Sentencepiece"))}
    for name in ("FastWordpieceTokenizeWithOffsets", "CaseFoldUTF8", "NormalizeUTF8"):
        assert name not in names


def test_marks_keep_the_order_of_unicode():
    points = probe(True, True, True)
    assert points.mark_classes["\u302e"] == 224
    assert "\u0301" not in points.mark_classes
    assert 0x0E31 in points.barriers and 0x0301 not in points.barriers
    assert points.changed[ord("É")] == "e" and points.changed[0xAD] == ""
    assert {" ", "\u3000"} <= points.spaces and {"!", "中"} <= points.alone
