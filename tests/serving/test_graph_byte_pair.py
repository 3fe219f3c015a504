import random

import keras
import numpy as np
import pytest

from keras_bert3.data.words import visible_offsets
from tests.tokenizers.test_byte_level_byte_pair import MERGES, SENTENCES, VOCABULARY, fuzz
from tests.tokenizers.test_byte_level_byte_pair import tokenizer as byte_level
from tests.tokenizers.test_byte_pair import tokenizer as gpt
from tests.tokenizers.test_word_piece import FUZZ

tf = pytest.importorskip("tensorflow", exc_type=ImportError)
if keras.backend.backend() != "tensorflow":
    pytest.skip("the graph is TensorFlow's, whatever the backend", allow_module_level=True)

from keras_bert3.serving.graph_byte_level import GraphByteLevel  # noqa: E402
from keras_bert3.serving.graph_gpt_byte_pair import GraphGPTBytePair  # noqa: E402

MORE = [
    *[
        "it's",
        "it 's",
        "'s's",
        "!'s",
        "''ll",
        "we'llx",
        "I'M",
        "don't've",
        "'",
        "x'",
        "\t'd",
        "'re",
    ],
    *["a  b", "a \n b", "\n\n", " a ", "  ", "a\u00a0b", "\x1cx", "!\x1c!", "\u2028a", "a\u0301b"],
    *[
        "²1",
        "Ⅷ",
        "١a",
        "\U0001f1e9\U0001f1ea",
        "\U0010ffff",
        "\ud7ff",
        "\u0378",
        "𝟘",
        "ªº",
        "__init__",
    ],
]


def ids_of(texts, pieces):
    rows = [[] for _ in texts]
    for row, index in zip(pieces.rows.numpy(), pieces.ids.numpy(), strict=True):
        rows[row].append(int(index))
    return rows


@pytest.fixture(scope="module")
def plain():
    tokenizer = byte_level()
    return tokenizer, GraphByteLevel(tokenizer)


def test_texts_give_the_ids_and_characters_of_the_python_path(plain):
    tokenizer, graph = plain
    texts = [*fuzz(3500), *(a + b for a in MORE for b in ["", *MORE]), *SENTENCES]
    pieces = graph.pieces(tf.constant(texts))
    found = ids_of(texts, pieces)
    wrong = [t for t, a, b in zip(texts, found, tokenizer(texts), strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:5])
    spans = np.stack([pieces.starts, pieces.ends], 1)
    expected = [visible_offsets(t, tokenizer.encode_with_offsets(t)[1]) for t in texts]
    np.testing.assert_array_equal(spans, np.concatenate(expected))


def test_every_code_point_gives_the_ids_of_the_python_path(plain):
    tokenizer, graph = plain
    points = [*range(0x3400), *range(0x3400, 0x110000, 37)]
    texts = [f"a{chr(c)}a1{chr(c)}1 {chr(c)}!" for c in points if not 0xD800 <= c < 0xE000]
    joined = ["".join(texts[i : i + 50]) for i in range(0, len(texts), 50)]
    assert ids_of(joined, graph.pieces(tf.constant(joined))) == tokenizer(joined)


def test_a_space_is_put_before_the_text_where_asked():
    tokenizer = byte_level(add_prefix_space=True)
    texts = [*fuzz(300, 1), "", "\ta", " a", "\u3000a", "lower"]
    pieces = GraphByteLevel(tokenizer).pieces(tf.constant(texts))
    assert ids_of(texts, pieces) == tokenizer(texts)
    expected = [visible_offsets(t, tokenizer.encode_with_offsets(t)[1]) for t in texts]
    spans = np.stack([pieces.starts, pieces.ends], 1)
    np.testing.assert_array_equal(spans, np.concatenate(expected))


def test_pairs_that_were_learned_before_their_sides_are_joined_as_in_python():
    """ "ab" is made by the last pair, and is a side of the first."""
    from keras_bert3.tokenizers.byte_level_byte_pair import ByteLevelBytePairTokenizer

    merges = [("bc", "a"), ("ab", "c"), ("b", "c"), ("a", "b"), ("bca", "a"), ("a", "a")]
    vocabulary = [*VOCABULARY[: -len(MERGES) - 1], *map("".join, merges), "[MASK]"]
    tokenizer = ByteLevelBytePairTokenizer(vocabulary, merges)
    graph = GraphByteLevel(tokenizer)
    assert not graph.merges.at_once and GraphByteLevel(byte_level()).merges.at_once
    draw = np.random.default_rng(0)
    texts = ["".join(draw.choice([*"abc"], 12)) for _ in range(500)]
    assert ids_of(texts, graph.pieces(tf.constant(texts))) == tokenizer(texts)


def test_nothing_much_and_what_ends_the_call(plain):
    tokenizer, graph = plain
    assert ids_of([], graph.pieces(tf.constant([], tf.string))) == []
    assert graph(tf.constant(["", "lo", ""])).to_list() == tokenizer(["", "lo", ""])
    text = "lower " * 17000
    assert ids_of([text], graph.pieces(tf.constant([text]))) == [tokenizer(text)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="words of at most 10000"):
        graph(tf.constant(["a", "lo" * 5001]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
        graph(tf.constant([b"\xff"]))


def test_gpt_texts_give_the_ids_of_the_python_path():
    tokenizer = gpt()
    graph = GraphGPTBytePair(tokenizer)
    alphabet = [*FUZZ, *"lowernstid", "lower", "newest", "Σ", "ΑΣ", "ö", "\n"]
    draw = random.Random(3)
    texts = ["".join(draw.choices(alphabet, k=draw.randint(0, 24))) for _ in range(3500)]
    texts += [*SENTENCES, "", "<unk>", "low</w>", "_start_", "lower" * 30]
    pieces = graph.pieces(tf.constant(texts))
    found, expected = ids_of(texts, pieces), tokenizer(texts)
    wrong = [t for t, a, b in zip(texts, found, expected, strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:5])
    assert len({index for row in expected for index in row}) > 15
