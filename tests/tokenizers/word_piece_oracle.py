"""The published WordPiece rules, written out a second time in plain Python.

From the description of google-research/bert `tokenization.py`, with Python's `unicodedata` for
every category, as there. It is slow and knows no offsets; the tests hold the Rust pipeline to it.
"""

import unicodedata
from collections.abc import Callable, Collection

IDEOGRAPH_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
ASCII_PUNCTUATION_RANGES = ((33, 47), (58, 64), (91, 96), (123, 126))


def inside(code_point: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code_point <= last for first, last in ranges)


def is_space(character: str) -> bool:
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_dropped(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character in "\x00\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def is_punctuation(character: str) -> bool:
    ascii_mark = inside(ord(character), ASCII_PUNCTUATION_RANGES)
    return ascii_mark or unicodedata.category(character).startswith("P")


def clean(text: str) -> str:
    kept = [character for character in text if not is_dropped(character)]
    return "".join(" " if is_space(character) else character for character in kept)


def space_ideographs(text: str) -> str:
    return "".join(f" {c} " if inside(ord(c), IDEOGRAPH_BLOCKS) else c for c in text)


def strip_marks(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


def split_punctuation(word: str) -> list[str]:
    parts: list[str] = []
    glue = False
    for character in word:
        if is_punctuation(character):
            parts.append(character)
            glue = False
        elif glue:
            parts[-1] += character
        else:
            parts.append(character)
            glue = True
    return parts


def basic_words(
    text: str,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese_characters: bool = True,
) -> list[str]:
    """Clean, space ideographs, split on whitespace, fold case and accents, split on punctuation."""
    strip_accents = lowercase if strip_accents is None else strip_accents
    text = clean(text)
    text = space_ideographs(text) if split_chinese_characters else text
    words: list[str] = []
    for word in text.split():
        word = word.lower() if lowercase else word
        word = strip_marks(word) if strip_accents else word
        words.extend(split_punctuation(word))
    return " ".join(words).split()


def longest_pieces(word: str, vocabulary: Collection[str], max_word_length: int) -> list[str]:
    """Take the longest piece of the vocabulary again and again; one miss makes the word [UNK]."""
    if len(word) > max_word_length:
        return ["[UNK]"]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def oracle(
    vocabulary: Collection[str], lowercase: bool, max_word_length: int = 200
) -> Callable[[str], list[str]]:
    """The whole tokenizer for a vocabulary, as a function from text to pieces."""
    known = frozenset(vocabulary)

    def tokenize(text: str) -> list[str]:
        words = basic_words(text, lowercase)
        return [piece for word in words for piece in longest_pieces(word, known, max_word_length)]

    return tokenize
