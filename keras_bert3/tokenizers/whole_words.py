"""Which pieces go on with a word, where a vocabulary marks the start of words."""

import unicodedata


def continues_word(text: str, starts_word: bool) -> bool:
    """Tell whether a piece belongs to the word of the piece before it.

    It does unless it starts with the mark of a new word (a space, or SentencePiece's "▁") or is a
    single punctuation mark, space or control character (microsoft/DeBERTa, `part_of_whole_word` of
    its two tokenizers), so that the comma after a word is a word of its own.

    Args:
        text: the piece, without the mark.
        starts_word: whether the mark was there.

    Example: `continues_word("able", False)` is True, `continues_word(",", False)` is False.
    """
    return not starts_word and not (len(text) == 1 and _stands_alone(text))


def _stands_alone(character: str) -> bool:
    """Tell whitespace, control characters, punctuation and the ASCII symbols from the rest."""
    if character.isspace() or unicodedata.category(character)[0] in "PC":
        return True
    return character.isascii() and not character.isalnum()


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a stretch of a text to what is not whitespace; whitespace alone stays as it is.

    Example: `trim("a  b", 1, 4)` is `(3, 4)`.
    """
    stretch = text[start:end]
    if not stretch.strip():
        return start, end
    return end - len(stretch.lstrip()), start + len(stretch.rstrip())
