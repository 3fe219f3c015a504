"""Words in a text, and the tokens they became."""

import unicodedata
from collections.abc import Sequence

import numpy as np

from keras_bert3.tokenizers.basic_tokenization import IDEOGRAPH_BLOCKS

Spans = Sequence[tuple[int, int]]


def word_spans(text: str, whole: Spans = ()) -> list[tuple[int, int]]:
    """Find the words of a text: runs of letters, marks and digits; every other sign on its own.

    Ideographs are words of their own, since nothing separates Chinese words. No tokenizer has a
    part in this, so that the words, and labels on them, are the same for every model; but for
    tokens that stand for no words, such as "[E1]", and are not to be cut.

    Args:
        text: any text.
        whole: (start, end) of stretches that are words whatever is in them, in order.

    Returns:
        Pairs (start, end) of characters, the end excluded.

    Example: `word_spans("It's 5 pm.")` is `[(0, 2), (2, 3), (3, 4), (5, 6), (7, 9), (9, 10)]`.
    """
    spans: list[tuple[int, int]] = []
    done = 0
    for start, end in whole:
        spans += [*_spans(text, done, start), (start, end)]
        done = end
    return spans + _spans(text, done, len(text))


def _spans(text: str, first: int, end: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    is_open = False
    for place, character in enumerate(text[first:end], first):
        kind = _kind(character)
        if kind == "nothing":
            continue
        if kind == "letter" and is_open:
            spans[-1] = (spans[-1][0], place + 1)
        elif kind != "space":
            spans.append((place, place + 1))
        is_open = kind == "letter"
    return spans


def _kind(character: str) -> str:
    """Tell letters, which words are made of, from signs, which stand alone, and from space.

    Characters without a shape, such as a soft hyphen, are nothing: a word goes on across them.
    """
    category = unicodedata.category(character)
    if character.isspace():
        return "space"
    if category in ("Cc", "Cf"):
        return "nothing"
    if category[0] in "PS":
        return "sign"
    code = ord(character)
    is_ideograph = any(first <= code <= last for first, last in IDEOGRAPH_BLOCKS)
    return "sign" if is_ideograph else "letter"


def visible_offsets(text: str, offsets: Spans) -> np.ndarray:
    """Return the offsets of tokens without the space that some tokenizers count to a token.

    Args:
        text: what was tokenised.
        offsets: (start, end) of each token, in characters.

    Returns:
        int `[tokens, 2]`; a token of nothing but space keeps its end, twice.
    """
    visible = np.array(offsets, "int64").reshape(-1, 2)
    for token, (start, end) in enumerate(offsets):
        stretch = text[start:end]
        visible[token, 0] += len(stretch) - len(stretch.lstrip())
        if visible[token, 0] < end:
            visible[token, 1] -= len(stretch) - len(stretch.rstrip())
    return visible


def words_of_tokens(offsets: np.ndarray, words: Spans) -> np.ndarray:
    """Return for each token the word in which it starts, or the next word where it is in none.

    Args:
        offsets: int `[tokens, 2]`, see `visible_offsets`.
        words: at least one pair (start, end), in order.

    Returns:
        int `[tokens]`, never falling.
    """
    ends = np.array([end for _, end in words])
    return np.minimum(np.searchsorted(ends, offsets[:, 0], side="right"), len(words) - 1)


def tokenize_words(tokenizer, text: str, words: Spans) -> tuple[np.ndarray, np.ndarray]:
    """Turn words into ids, and find the first token of every word.

    A word of which the tokenizer leaves nothing, such as a zero-width space, becomes the unknown
    token: no word is ever lost.

    Args:
        tokenizer: with `encode_with_offsets` and `unknown_id`.
        text: holds the words.
        words: (start, end) of each word in the text, in order.

    Returns:
        The ids, int32 `[tokens]`, and the place of each word's first token, int `[words]`.
    """
    if not words:
        return np.zeros(0, "int32"), np.zeros(0, "int64")
    ids, offsets = tokenizer.encode_with_offsets(text)
    visible = visible_offsets(text, offsets)
    word_of = words_of_tokens(visible, words)
    is_visible = visible[:, 0] < visible[:, 1]
    missing = np.setdiff1d(np.arange(len(words)), word_of[is_visible])
    places = np.searchsorted(word_of, missing)
    ids = np.insert(np.array(ids, "int32"), places, tokenizer.unknown_id)
    word_of = np.insert(word_of, places, missing)
    is_visible = np.insert(is_visible, places, True)
    candidates = np.flatnonzero(is_visible)
    return ids, candidates[np.searchsorted(word_of[candidates], np.arange(len(words)))]


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Put a space between words, and say where each of them stands.

    Example: `join_words(["It", "'s"])` is `("It 's", [(0, 2), (3, 5)])`.
    """
    spans, place = [], 0
    for word in words:
        spans.append((place, place + len(word)))
        place += len(word) + 1
    return " ".join(words), spans
