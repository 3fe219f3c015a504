import numpy as np
import pytest

from keras_bert3.data.words import (
    join_words,
    tokenize_words,
    visible_offsets,
    word_spans,
    words_of_tokens,
)
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "jim", "hen", "##son", "was", ".", "中"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 5 pm.", ["It", "'", "s", "5", "pm", "."]),
        ("  a\u00a0b\n", ["a", "b"]),
        ("中国x", ["中", "国", "x"]),
        ("cafe\u0301 हिन्दी", ["cafe\u0301", "हिन्दी"]),
        ("hel\u00adlo \u200b", ["hel\u00adlo"]),
        ("3$😀+", ["3", "$", "😀", "+"]),
        ("", []),
        (" ", []),
    ],
)
def test_words_of_a_text(text, words):
    assert [text[start:end] for start, end in word_spans(text)] == words


def test_whole_stretches_are_words():
    text = "x[E1] Jim's[/E1]"
    whole = [(1, 5), (11, 16)]
    words = [text[start:end] for start, end in word_spans(text, whole)]
    assert words == ["x", "[E1]", "Jim", "'", "s", "[/E1]"]


def test_first_tokens_of_words():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    text, spans = join_words(["Jim", "Henson", "was", "\u200b", "U.", "", "中中", "."])
    ids, first = tokenize_words(tokenizer, text, spans)
    assert [tokenizer.id_to_token(int(i)) for i in ids] == [
        *("jim", "hen", "##son", "was", "[UNK]", "[UNK]", ".", "[UNK]", "中", "中", "."),
    ]
    assert first.tolist() == [0, 1, 3, 4, 5, 7, 8, 10]


def test_no_words_have_no_tokens():
    ids, first = tokenize_words(WordPieceTokenizer(VOCABULARY), "", [])
    assert ids.tolist() == [] and first.tolist() == []
    ids, first = tokenize_words(WordPieceTokenizer(VOCABULARY), " ", [(0, 0), (1, 1)])
    assert ids.tolist() == [1, 1] and first.tolist() == [0, 1]


class Spaces:
    """Counts a leading space to its token, and gives space before a sign a token of its own."""

    unknown_id = 9

    def encode_with_offsets(self, text):
        assert text == "ab cd 中"
        return [1, 2, 3, 4, 5], [(0, 2), (2, 4), (4, 5), (5, 6), (6, 7)]


def test_space_in_a_token_is_no_part_of_a_word():
    text, spans = join_words(["ab", "cd", "中"])
    ids, first = tokenize_words(Spaces(), text, spans)
    assert ids.tolist() == [1, 2, 3, 4, 5]
    assert first.tolist() == [0, 1, 4]
    offsets = visible_offsets(text, [(0, 2), (2, 4), (4, 5), (5, 6), (6, 7)])
    assert offsets.tolist() == [[0, 2], [3, 4], [4, 5], [6, 6], [6, 7]]
    assert words_of_tokens(offsets, spans).tolist() == [0, 1, 1, 2, 2]


def test_joined_words_stand_where_they_are_said_to():
    words = ["a", "", "b c", "d"]
    text, spans = join_words(words)
    assert [text[start:end] for start, end in spans] == words


def test_random_words_keep_their_first_tokens():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    generator = np.random.default_rng(0)
    pool = ["jim", "henson", "was", "x", "\u00ad", "中中", "Jim.", "was.was"]
    for _ in range(20):
        words = [pool[i] for i in generator.integers(0, len(pool), 12)]
        ids, first = tokenize_words(tokenizer, *join_words(words))
        pieces = [tokenizer(word) or [tokenizer.unknown_id] for word in words]
        assert ids.tolist() == sum(pieces, [])
        assert first.tolist() == np.cumsum([0, *map(len, pieces[:-1])]).tolist()
