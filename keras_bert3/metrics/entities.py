"""Entities in tagged text, scored as CoNLL's conlleval does (Tjong Kim Sang & De Meulder 2003)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_BEGINS = ("B", "S")
_ENDS = ("E", "S")


class Chunk(NamedTuple):
    """An entity.

    Args:
        kind: such as "PER".
        start: its first word.
        end: the word after its last.
    """

    kind: str
    start: int
    end: int


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """Read the entities out of the tags of one sentence.

    An entity begins at B-, after O, and wherever the kind changes; so IOB1, where B- only parts
    neighbours of one kind, and IOB2, where every entity begins with it, are read alike. E- and S-
    end one (IOBES), which conlleval itself does not always heed.

    Args:
        tags: "O", or a letter, a hyphen and a kind.

    Raises:
        ValueError: for another tag.

    Example: `chunks(["B-PER", "I-PER", "O", "I-LOC"])` is
    `[("PER", 0, 2), ("LOC", 3, 4)]`.
    """
    found: list[Chunk] = []
    previous, previous_kind = OUTSIDE, ""
    for place, tag in enumerate(tags):
        letter, kind = split_tag(tag)
        if letter != OUTSIDE:
            is_new = letter in _BEGINS or previous == OUTSIDE or previous in _ENDS
            if is_new or kind != previous_kind:
                found.append(Chunk(kind, place, place + 1))
            else:
                found[-1] = found[-1]._replace(end=place + 1)
        previous, previous_kind = letter, kind
    return found


def split_tag(tag: str) -> tuple[str, str]:
    """Part a tag into its letter and its kind.

    Example: `split_tag("B-PER")` is `("B", "PER")`, and `split_tag("O")` is `("O", "")`.
    """
    letter, hyphen, kind = tag.partition("-")
    if tag == OUTSIDE or (letter in ("B", "I", "E", "S") and hyphen and kind):
        return letter, kind
    raise ValueError(
        f"Expected tags such as 'O', 'B-PER' and 'I-PER' (B, I, E or S). Received: {tag!r}"
    )


def iob2(tags: Sequence[str]) -> list[str]:
    """Write the entities of a sentence as IOB2, whatever they were written in.

    Example: `iob2(["I-PER", "I-PER", "B-PER"])` is `["B-PER", "I-PER", "B-PER"]`.
    """
    return tags_of(chunks(tags), len(tags))


def tags_of(entities: Iterable[Chunk], length: int) -> list[str]:
    """Write entities as the IOB2 tags of a sentence of `length` words."""
    tags = [OUTSIDE] * length
    for kind, start, end in entities:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


def entity_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Score predicted tags: an entity counts where its kind and both its ends are right.

        precision = right / predicted,  recall = right / gold,
        f1 = 2 precision recall / (precision + recall)

    over all sentences together, each 0 where there is nothing to divide by.

    Args:
        gold: the tags of each sentence.
        predicted: as many tags for each.

    Returns:
        `precision`, `recall`, `f1` and `accuracy` (of tags), from 0 to 1, and the first three for
        each kind as `precision/PER` and so on.

    Raises:
        ValueError: if a sentence has more tags in one than in the other.

    Example: `entity_scores([["B-PER", "O"]], [["B-PER", "B-LOC"]])["f1"]` is `2 / 3`.
    """
    _check_lengths(gold, predicted)
    golden, guessed, right = Counter(), Counter(), Counter()
    for wanted, received in zip(gold, predicted, strict=True):
        both = set(chunks(wanted)), set(chunks(received))
        golden.update(chunk.kind for chunk in both[0])
        guessed.update(chunk.kind for chunk in both[1])
        right.update(chunk.kind for chunk in both[0] & both[1])
    scores = _rates(golden.total(), guessed.total(), right.total(), "")
    tags = [pair for rows in zip(gold, predicted, strict=True) for pair in zip(*rows, strict=True)]
    scores["accuracy"] = sum(a == b for a, b in tags) / max(len(tags), 1)
    for kind in sorted(golden | guessed):
        scores |= _rates(golden[kind], guessed[kind], right[kind], f"/{kind}")
    return scores


def _rates(golden: int, guessed: int, right: int, suffix: str) -> dict[str, float]:
    precision, recall = right / max(guessed, 1), right / max(golden, 1)
    f1 = 2 * right / max(guessed + golden, 1)
    return {f"precision{suffix}": precision, f"recall{suffix}": recall, f"f1{suffix}": f1}


def _check_lengths(gold, predicted) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"Expected tags for {len(gold)} sentences. Received: for {len(predicted)}")
    for number, (wanted, received) in enumerate(zip(gold, predicted, strict=True)):
        if len(wanted) != len(received):
            raise ValueError(
                f"Expected {len(wanted)} tags in sentence {number}. Received: {len(received)}"
            )
