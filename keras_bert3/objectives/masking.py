"""Masked language modelling: which tokens are hidden, and by what (BERT section 3.1, A.1).

15 % of the tokens are chosen; of these 80 % become [MASK], 10 % a random token of the vocabulary,
and 10 % stay as they are. `mask_tokens` is the rule of google-research/bert
create_pretraining_data.py, draw for draw. `mask_batch` is the same rule for a whole batch at once,
a pure function of the seed and of each example's index, for masks made anew while training
(RoBERTa section 4.1).
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert3.objectives.counter_random import integers_below, random_bits, uniform
from keras_bert3.objectives.mask_selection import (
    MAX_LENGTH,
    choose_tokens,
    choose_words,
    first_positions,
    group_words,
    starts_of_words,
)

# Independent random streams of mask_batch.
_CHOICE, _REPLACEMENT, _GROUPS = range(3)  # _GROUPS uses 3 too
_LOW_32_BITS = np.uint64(2**32 - 1)


class MaskedTokens(NamedTuple):
    """One masked sequence.

    Attributes:
        token_ids: the visible ids.
        mask_positions: the chosen positions, ascending.
        labels: the ids hidden there.
    """

    token_ids: list[int]
    mask_positions: list[int]
    labels: list[int]


class MaskedBatch(NamedTuple):
    """One masked batch.

    Attributes:
        token_ids: int32 [b, t], the visible ids.
        mask_positions: int32 [b, p], ascending; unused slots hold 0.
        labels: int32 [b, p], the hidden ids; unused slots hold 0.
        weights: float32 [b, p], 1 for a prediction and 0 for an unused slot.
    """

    token_ids: np.ndarray
    mask_positions: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def num_predictions(lengths: np.ndarray, rate: float, max_predictions: int) -> np.ndarray:
    """Number of tokens to predict: `min(max_predictions, max(1, round(length * rate)))`.

    Args:
        lengths: integers of any shape, real tokens of each sequence, special tokens included.
        rate: share of the tokens to predict, 0.15 in the paper.
        max_predictions: prediction slots of a sequence.

    Returns:
        int64 of the shape of `lengths`; halves are rounded to the even neighbour, as in Python.
    """
    rounded = np.rint(np.asarray(lengths) * rate).astype(np.int64)
    return np.minimum(max_predictions, np.maximum(1, rounded))


def mask_tokens(
    token_ids: Sequence[int],
    is_special: np.ndarray,
    is_continuation: np.ndarray,
    mask_id: int,
    vocabulary_size: int,
    max_predictions: int,
    rate: float = 0.15,
    whole_words: bool = False,
    rng: random.Random | None = None,
) -> MaskedTokens:
    """Mask one sequence with the draws of google-research/bert, in their order.

    The candidates are shuffled and taken until the number to predict is reached; one that would
    overflow it is passed over, so long words at a small budget may leave a sequence without any
    prediction, as published. Random replacements come from the whole vocabulary, special tokens
    included.

    Args:
        token_ids: ids of one sequence without padding, special tokens included.
        is_special: bool [V], ids that are never chosen; [CLS] and [SEP] in the published rule.
        is_continuation: bool [V], ids that continue a word ("##"); used with `whole_words`.
        mask_id: id of [MASK].
        vocabulary_size: number of ids a random replacement is drawn from.
        max_predictions: most tokens to predict, 20 for length 128 in the published script.
        rate: share of the tokens to predict (default: the paper's 0.15).
        whole_words: choose all pieces of a word together (the later "whole word masking" models).
        rng: the generator to draw from; a new unseeded one when absent.

    Returns:
        A `MaskedTokens`.

    Example:
        >>> table = np.zeros(10, bool)
        >>> mask_tokens([7, 8, 9], table, table, 4, 10, 1, rng=random.Random(0)).mask_positions
        [0]
    """
    rng = rng or random.Random()
    candidates = _word_sets(token_ids, is_special, is_continuation if whole_words else None)
    rng.shuffle(candidates)
    limit = int(num_predictions(np.array(len(token_ids)), rate, max_predictions))
    masked = list(token_ids)
    chosen: list[int] = []
    for word in candidates:
        if len(chosen) >= limit:
            break
        if len(chosen) + len(word) > limit:
            continue
        for position in word:
            masked[position] = _replacement(token_ids[position], mask_id, vocabulary_size, rng)
            chosen.append(position)
    chosen.sort()
    return MaskedTokens(masked, chosen, [int(token_ids[position]) for position in chosen])


def _word_sets(
    token_ids: Sequence[int], is_special: np.ndarray, is_continuation: np.ndarray | None
) -> list[list[int]]:
    words: list[list[int]] = []
    for position, token_id in enumerate(token_ids):
        if is_special[token_id]:
            continue
        # As published: a piece after [SEP] joins the word before it.
        if is_continuation is not None and words and is_continuation[token_id]:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _replacement(token_id: int, mask_id: int, vocabulary_size: int, rng: random.Random) -> int:
    if rng.random() < 0.8:
        return mask_id
    if rng.random() < 0.5:
        return token_id
    return rng.randint(0, vocabulary_size - 1)


def mask_batch(
    token_ids: np.ndarray,
    padding_mask: np.ndarray,
    example_indices: np.ndarray,
    *,
    seed: int,
    is_special: np.ndarray,
    mask_id: int,
    max_predictions: int,
    rate: float = 0.15,
    probabilities: tuple[float, float, float] = (0.8, 0.1, 0.1),
    whole_words: bool = False,
    is_continuation: np.ndarray | None = None,
    word_ids: np.ndarray | None = None,
    longest_group: int = 1,
    exclude_special_replacements: bool = False,
) -> MaskedBatch:
    """Mask a batch; each row depends on `(seed, its example index, its tokens)` and nothing else.

    A row with a token that can be chosen never comes back without a prediction: where no whole word
    fits the number to predict, the shortest is taken (its first `max_predictions` pieces). A row
    with nothing to choose has weights of zero.

    Args:
        token_ids: int [b, t], special tokens included, t below 65536.
        padding_mask: bool [b, t], true for real tokens.
        example_indices: int [b], one name a row; give a new one to mask the same text anew.
        seed: any integer.
        is_special: bool [V], ids that are never chosen; V is the vocabulary size.
        mask_id: id of [MASK].
        max_predictions: prediction slots p of a row.
        rate: share of the real tokens to predict (default: the paper's 0.15).
        probabilities: how a chosen token is shown: as [MASK], as itself, as a random token. The
            paper's 80/10/10 by default; its table 8 compares other mixes.
        whole_words: choose the pieces of a word together or not at all.
        is_continuation: bool [V], ids that continue the word of the token before them. A word never
            reaches across a special token.
        word_ids: int [b, t] instead of `is_continuation`; a word is a run of equal numbers. For
            SentencePiece, and for the words of unspaced scripts such as Chinese, where every
            character is its own token and no vocabulary can tell the words.
        longest_group: choose runs of up to so many words (or tokens, without `whole_words`)
            together, n of them with a probability proportional to 1 / n (DeBERTa: 3, see
            `group_words`). Groups stand apart, so that at a rate above 0.15 they run out.
        exclude_special_replacements: draw random tokens from the ids that are not special. The
            released code, and the default, draw from the whole vocabulary.

    Returns:
        A `MaskedBatch`; the inputs are left unchanged.

    Raises:
        ValueError: shapes disagree, probabilities do not sum to 1, there is no prediction slot, or
            whole words are asked for without a way to tell them.

    Example:
        >>> special = np.arange(20) < 5
        >>> batch = mask_batch(np.array([[2, 9, 8, 3, 0]]), np.array([[1, 1, 1, 1, 0]], bool),
        ...     np.array([0]), seed=1, is_special=special, mask_id=4, max_predictions=2)
        >>> batch.weights.tolist()
        [[1.0, 0.0]]
    """
    _check_batch(
        token_ids, padding_mask, example_indices, probabilities, max_predictions, longest_group
    )
    rows = np.asarray(example_indices, np.int64)[:, None]
    candidates = padding_mask.astype(bool) & ~is_special[token_ids]
    budget = num_predictions(padding_mask.sum(1), rate, max_predictions)
    keys = random_bits(seed, _CHOICE, rows, np.arange(token_ids.shape[1]))
    if whole_words or longest_group > 1:
        starts = candidates
        if whole_words:
            starts = candidates & starts_of_words(token_ids, candidates, is_continuation, word_ids)
        if longest_group > 1:
            keys, candidates, starts = group_words(
                keys, candidates, starts, longest_group, seed, _GROUPS, rows
            )
        chosen = choose_words(keys, candidates, starts, budget, max_predictions)
    else:
        chosen = choose_tokens(keys, candidates, budget)
    positions, valid = first_positions(chosen, max_predictions)
    labels = np.where(valid, np.take_along_axis(token_ids, positions, 1), 0)
    excluded = is_special if exclude_special_replacements else np.zeros_like(is_special)
    replacements = np.flatnonzero(~excluded)
    bits = random_bits(seed, _REPLACEMENT, rows, positions)
    shown = _shown_tokens(bits, labels, mask_id, probabilities, replacements)
    masked = token_ids.astype(np.int32)
    row, slot = np.nonzero(valid)
    masked[row, positions[row, slot]] = shown[row, slot]
    return MaskedBatch(
        masked, positions.astype(np.int32), labels.astype(np.int32), valid.astype(np.float32)
    )


def _check_batch(
    token_ids, padding_mask, example_indices, probabilities, max_predictions, longest_group
) -> None:
    if token_ids.ndim != 2 or token_ids.shape != padding_mask.shape:
        raise ValueError(
            "Expected token_ids and padding_mask of one shape [batch, length]. "
            f"Received: {token_ids.shape} and {padding_mask.shape}."
        )
    if np.shape(example_indices) != token_ids.shape[:1]:
        raise ValueError(
            f"Expected example_indices of shape {token_ids.shape[:1]}. "
            f"Received: {np.shape(example_indices)}."
        )
    if token_ids.shape[1] >= MAX_LENGTH:
        raise ValueError(
            f"Expected sequences of less than {MAX_LENGTH} tokens. Received: {token_ids.shape[1]}."
        )
    if max_predictions < 1 or longest_group < 1:
        raise ValueError(
            "Expected max_predictions >= 1 and longest_group >= 1. "
            f"Received: max_predictions={max_predictions}, longest_group={longest_group}."
        )
    valid = len(probabilities) == 3 and min(probabilities) >= 0
    if not valid or abs(sum(probabilities) - 1) > 1e-6:
        raise ValueError(
            "Expected three probabilities (mask, keep, random) that sum to 1. "
            f"Received: {probabilities}."
        )


def _shown_tokens(bits, labels, mask_id, probabilities, replacements) -> np.ndarray:
    """Give what the model sees at the chosen positions: int64 [b, p].

    The upper half of the random bits decides, the lower half draws the random token.
    """
    mask_probability, keep_probability, _ = probabilities
    draw = uniform(bits & ~_LOW_32_BITS)
    random_ids = replacements[integers_below(bits << np.uint64(32), len(replacements))]
    kept = np.where(draw < mask_probability + keep_probability, labels, random_ids)
    return np.where(draw < mask_probability, mask_id, kept)
