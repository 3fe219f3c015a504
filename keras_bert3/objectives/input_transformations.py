"""Any task as one row of tokens: figure 1 (right) of GPT-1 (Radford et al. 2018).

| task            | rows                                                                       |
|-----------------|----------------------------------------------------------------------------|
| classification  | start text classify                                                        |
| entailment      | start premise delimiter hypothesis classify                                |
| similarity      | start a delimiter b classify, and start b delimiter a classify             |
| multiple choice | for each answer: start context question delimiter answer classify          |

The three special tokens stand after the vocabulary and start anew for each task. The classifier
reads the last layer at the classify token; similarity adds both rows' before the linear layer, and
multiple choice takes a softmax over the answers' scores, one from each row (section 3.3).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Ids = Sequence[int]


class SpecialIds(NamedTuple):
    """The ids of the special tokens: V, V + 1 and V + 2 for a vocabulary of V (40,478)."""

    start: int
    delimiter: int
    classify: int


def special_ids(vocabulary_size: int) -> SpecialIds:
    """Return the ids that follow a vocabulary, in the released order.

    Example: `special_ids(40478)` is `(40478, 40479, 40480)`.
    """
    return SpecialIds(vocabulary_size, vocabulary_size + 1, vocabulary_size + 2)


def classification(text: Ids, special: SpecialIds, max_length: int = 512) -> list[int]:
    """Frame one text; it is cut to `max_length` - 2 tokens.

    Example: `classification([7, 8], special_ids(10))` is `[10, 7, 8, 12]`.
    """
    _check_length(max_length)
    return [special.start, *text[: max_length - 2], special.classify]


def entailment(
    premise: Ids, hypothesis: Ids, special: SpecialIds, max_length: int = 512
) -> list[int]:
    """Frame an ordered pair; each text is cut to `max_length` // 2 - 2 tokens, as released.

    Example: `entailment([7, 8], [9], special_ids(10))` is `[10, 7, 8, 11, 9, 12]`.
    """
    _check_length(max_length)
    room = max_length // 2 - 2
    return [
        special.start,
        *premise[:room],
        special.delimiter,
        *hypothesis[:room],
        special.classify,
    ]


def similarity(
    first: Ids, second: Ids, special: SpecialIds, max_length: int = 512
) -> list[list[int]]:
    """Frame a pair without an order, both ways round: two rows."""
    return [
        entailment(first, second, special, max_length),
        entailment(second, first, special, max_length),
    ]


def multiple_choice(
    context: Ids,
    question: Ids,
    answers: Sequence[Ids],
    special: SpecialIds,
    max_length: int = 512,
) -> list[list[int]]:
    """Frame a document, a question (which may be empty) and each of its answers: a row an answer.

    Where document and question exceed their half, the document is cut and the question kept.

    Raises:
        ValueError: without answers.
    """
    _check_length(max_length)
    if not len(answers):
        raise ValueError("Expected at least one answer. Received: none")
    room = max_length // 2 - 2
    kept = context[: max(room - len(question), 0)]
    return [entailment([*kept, *question], answer, special, max_length) for answer in answers]


def _check_length(max_length: int) -> None:
    if max_length < 6:
        raise ValueError(
            "Expected max_length of at least 6 (three special tokens and one of each text). "
            f"Received: {max_length}"
        )


def pack_rows(
    rows: Sequence[Ids], special: SpecialIds, sequence_length: int | None = None, pad_id: int = 0
) -> dict[str, np.ndarray]:
    """Pad framed rows on the right.

    Args:
        rows: from the functions above; for tasks of several rows an example, all rows of the first
            example, then those of the second.
        special: the special tokens.
        sequence_length: tokens of a row; the longest row's when None.
        pad_id: what stands on padding; the mask tells it from a token.

    Returns:
        `token_ids` int32 and `padding_mask` bool `[b, q]`, and `classify_positions` int32 `[b]`,
        where the classifier reads.

    Raises:
        ValueError: for a row that is longer than `sequence_length`.
    """
    longest = max(map(len, rows), default=0)
    length = longest if sequence_length is None else sequence_length
    if longest > length:
        raise ValueError(f"Expected rows of at most {length} tokens. Received: one of {longest}")
    token_ids = np.full((len(rows), length), pad_id, "int32")
    padding_mask = np.zeros((len(rows), length), bool)
    for i, row in enumerate(rows):
        token_ids[i, : len(row)], padding_mask[i, : len(row)] = row, True
    positions = classify_positions(token_ids, special.classify)
    return {
        "token_ids": token_ids,
        "padding_mask": padding_mask,
        "classify_positions": positions,
    }


def classify_positions(token_ids: np.ndarray, classify_id: int) -> np.ndarray:
    """Find the first classify token of each row, wherever its padding is: int32 `[b]`.

    Raises:
        ValueError: for a row that has none.
    """
    found = np.asarray(token_ids) == classify_id
    without = np.flatnonzero(~found.any(axis=1))
    if len(without):
        raise ValueError(
            f"Expected the classify token {classify_id} in every row. "
            f"Received: row {without[0]} without it"
        )
    return found.argmax(axis=1).astype("int32")


def auxiliary_lm_targets(
    token_ids: np.ndarray, padding_mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and weights of the auxiliary language model (section 3.2, equation 5).

    Every real token but a row's first is predicted, special tokens included; a row's losses are
    averaged, then rows: the sum of weight times loss over a batch is the released figure.

    Args:
        token_ids: `[b, q]`.
        padding_mask: `[b, q]`, nonzero for real tokens, in one stretch.

    Returns:
        Labels int32 `[b, q]`, each the token that follows, and weights float32 `[b, q]`, whose sum
        is 1.
    """
    real = np.asarray(padding_mask) != 0
    counts = np.zeros(real.shape, "float32")
    counts[:, :-1] = real[:, 1:] & real[:, :-1]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1.0)
    return np.roll(token_ids, -1, axis=1).astype("int32"), shares / len(real)


def soft_similarity_labels(scores: np.ndarray, num_classes: int = 6) -> np.ndarray:
    """Turn scores into distributions over whole scores whose means they are.

    The mass of y is shared by floor(y) and floor(y) + 1 (Tai et al. 2015, section 4.2), as the
    released code does for STS-B's scores from 0 to 5.

    Args:
        scores: `[b]`, from 0 to `num_classes` - 1.
        num_classes: whole scores, from 0 on.

    Returns:
        float32 `[b, num_classes]`.

    Raises:
        ValueError: for a score outside the range.

    Example: `soft_similarity_labels([3.8])` is `[[0, 0, 0, 0.2, 0.8, 0]]`.
    """
    scores = np.asarray(scores, "float64")
    if scores.size and (scores.min() < 0 or scores.max() > num_classes - 1):
        raise ValueError(
            f"Expected scores from 0 to {num_classes - 1}. "
            f"Received: scores from {scores.min()} to {scores.max()}"
        )
    distance = np.abs(scores[:, None] - np.arange(num_classes))
    return np.maximum(1.0 - distance, 0.0).astype("float32")
