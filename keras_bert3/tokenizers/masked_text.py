"""Texts with masks written into them, as training would have hidden a word there."""

MARKS = ("▁", "Ġ")
"""How SentencePiece and byte-level pieces spell the space before a word."""


def ids_with_masks(tokenizer, text: str) -> list[int]:
    """Return the ids of a text in which the mask's name, such as "[MASK]", stands for tokens.

    Byte-level pieces hold the space before their word, so one space before a mask belongs to what
    it hides. What follows a mask without a space goes on without one, also where a tokenizer puts
    one before the first word of a text.

    Args:
        tokenizer: with `mask_id`.
        text: any text; without masks its ids are the tokenizer's.

    Example: `ids_with_masks(tokenizer, "a [MASK].")` are those of "a cat." with cat's hidden.
    """
    first, *rest = text.split(tokenizer.id_to_token(tokenizer.mask_id))
    ids = tokenizer(first.removesuffix(" ") if rest else first)
    for index, part in enumerate(rest, 1):
        part = part if index == len(rest) else part.removesuffix(" ")
        ids = [*ids, tokenizer.mask_id, *_going_on(tokenizer, part)]
    return ids


def bare(tokenizer, index: int) -> int:
    """The id of a piece without the space before it: -1 where it is nothing but the space.

    A piece that has none, or stands in the vocabulary with its space alone, keeps its id.
    """
    token = tokenizer.id_to_token(index)
    if token in MARKS:
        return -1
    try:
        return tokenizer.token_to_id(token[1:]) if token.startswith(MARKS) else index
    except ValueError:
        return index


def _going_on(tokenizer, part: str) -> list[int]:
    """The ids of a part of a text, without a space that it does not start with."""
    ids = tokenizer(part)
    if not ids or part[0].isspace() or part.startswith(MARKS):
        return ids
    first = bare(tokenizer, ids[0])
    return ids[1:] if first < 0 else [first, *ids[1:]]
