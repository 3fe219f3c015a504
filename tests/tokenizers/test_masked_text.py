"""A mask written into a text stands where training hides a word."""

import pytest

from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS
from keras_bert3.tokenizers.byte_level_byte_pair import ByteLevelBytePairTokenizer
from keras_bert3.tokenizers.masked_text import ids_with_masks
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

TEXTS = ["a [MASK] b", "[MASK] b", "a [MASK].", "a  [MASK] [MASK]", "a [MASK][MASK]b [MASK]", "a b"]


def byte_level(**settings):
    merges = [("Ġ", "c"), ("Ġ", "b"), ("Ġ", "a")]
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    vocabulary = [*special, *BYTE_CHARACTERS, *map("".join, merges), "[MASK]"]
    return ByteLevelBytePairTokenizer(vocabulary, merges, **settings)


def word_piece():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc.", "##c", "##b"])


def sentence_piece():
    pytest.importorskip("sentencepiece")
    from keras_bert3.tokenizers.sentence_piece_training import train_sentence_piece

    return train_sentence_piece(["a c b", "b c.", "a. b. c c"] * 9, 280)


def hidden(tokenizer, text):
    """As in training: of the ids of the whole text, those that spell the word c are hidden."""
    pieces = tokenizer.tokenize(text.replace("[MASK]", "c"))
    return [
        tokenizer.mask_id if piece in ("Ġc", "▁c", "c") else tokenizer.token_to_id(piece)
        for piece in pieces
    ]


CASES = [(make, text) for make in (byte_level, word_piece, sentence_piece) for text in TEXTS]
CASES.remove((word_piece, "a [MASK][MASK]b [MASK]"))  # without spaces one word of WordPiece


@pytest.mark.parametrize(("make", "text"), CASES)
def test_masks_are_where_training_hides_words(make, text):
    tokenizer = make()
    assert ids_with_masks(tokenizer, text) == hidden(tokenizer, text)
