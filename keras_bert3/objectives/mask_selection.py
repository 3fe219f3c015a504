"""Choose the tokens of a batch to predict: vectorised over its rows, on given random bits.

A word is a run of candidates; without whole words every token is its own. The words of a row are
put in random order and taken as long as they fit its budget, as in google-research/bert
create_pretraining_data.py. Words that stand together can be made to go together (`group_words`).
"""

import numpy as np

from keras_bert3.objectives.counter_random import random_bits, uniform

# A sort key holds 32 random bits, then the size of a word, then its first position.
_LOW_16_BITS = np.uint64(2**16 - 1)
_LOW_32_BITS = np.uint64(2**32 - 1)
_SIZE_SHIFT = np.uint64(16)
_NO_WORD = np.uint64(2**64 - 1)
MAX_LENGTH = 2**16


def starts_of_words(token_ids, candidates, is_continuation, word_ids) -> np.ndarray:
    """Tell where a token is not in the word of the token before it: bool [b, t]."""
    if word_ids is not None:
        joins = np.zeros(token_ids.shape, bool)
        joins[:, 1:] = np.asarray(word_ids)[:, 1:] == np.asarray(word_ids)[:, :-1]
    elif is_continuation is not None:
        joins = is_continuation[token_ids]
    else:
        raise ValueError(
            "Expected is_continuation or word_ids with whole_words=True. Received: neither."
        )
    joins[:, 0] = False
    joins[:, 1:] &= candidates[:, :-1]
    return ~joins


def choose_tokens(keys: np.ndarray, candidates: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """Choose the `budget` candidates with the smallest keys in each row: bool [b, t]."""
    _, order = _random_order(keys, candidates, np.uint64(1))
    taken = np.arange(keys.shape[1]) < np.minimum(budget, candidates.sum(1))[:, None]
    return _at_positions(order, taken)


def choose_words(keys, candidates, starts, budget, max_predictions) -> np.ndarray:
    """Choose whole words in random order, passing over those that overflow: bool [b, t]."""
    chosen = np.zeros(starts.shape, bool)
    if not starts.any():
        return chosen
    sizes = np.add.reduceat(candidates.ravel(), np.flatnonzero(starts), dtype=np.int64)
    ordered_sizes, order = _random_order(keys, starts, sizes.astype(np.uint64))
    taken = _take_while_they_fit(ordered_sizes, budget)
    nothing = ~taken.any(1) & starts.any(1)
    taken[nothing, ordered_sizes.argmin(1)[nothing]] = True
    # The pieces of a word are adjacent, so the candidates in order are the words, piece by piece.
    chosen[candidates] = _at_positions(order, taken)[starts].repeat(sizes)
    if nothing.any():
        chosen &= np.cumsum(chosen, axis=1) <= max_predictions
    return chosen


def group_words(keys, candidates, starts, longest, seed, stream, rows) -> tuple:
    """Group some words to n-grams of 1 to `longest` words, p(n) proportional to 1 / n.

    A row is walked from left to right as in microsoft/DeBERTa `mlm_task.py` (and XLNet): draw n;
    of the next 6 n words (6 = floor(1 / 0.15)) n neighbours are taken, beginning at any of the 6 n
    alike; go on behind them. About a sixth of the words is in a group. The words of a group share
    their random bits, so that `choose_words`, which takes words in the order of their bits, takes
    groups one after another, the last one perhaps in part. (There they are taken from left to
    right, which leaves the end of a text unmasked.)

    Args:
        keys: uint64 [b, t], random bits.
        candidates: bool [b, t], tokens of words.
        starts: bool [b, t], first tokens of the words.
        longest: most words of a group.
        seed: of the draws.
        stream: number of the first of two random streams.
        rows: int [b, 1], names of the examples.

    Returns:
        keys, candidates and starts of the words in groups, each [b, t].
    """
    words = np.cumsum(starts, axis=1) - 1
    counts = words[:, -1] + 1
    group = _walk(counts, longest, seed, stream, rows)
    # the group of each token's word, -1 for none; the last column serves tokens before any word
    group = np.take_along_axis(group, np.where(words < 0, group.shape[1] - 1, words), 1)
    grouped = group >= 0
    keys = np.where(grouped, np.take_along_axis(keys, np.maximum(group, 0), 1), keys)
    return keys, candidates & grouped, starts & grouped


def _walk(counts, longest: int, seed: int, stream: int, rows) -> np.ndarray:
    """Place n-grams over rows of `counts` words: int64 [b, words + 1], the number of the n-gram."""
    odds = np.cumsum(1 / np.arange(1, longest + 1))
    group = np.full((len(counts), counts.max(initial=0) + 1), -1, np.int64)
    places = np.arange(group.shape[1])
    offset, turn = np.zeros_like(counts), 0
    while (offset < counts).any():
        bits = random_bits(seed, stream, rows[:, 0], turn)
        size = 1 + np.searchsorted(odds, uniform(bits) * odds[-1], side="right")
        window = np.minimum(6 * size, counts - offset)
        bits = random_bits(seed, stream + 1, rows[:, 0], turn)
        first = offset + (uniform(bits) * np.maximum(window, 1)).astype(np.int64)
        last = np.minimum(first + size, counts)
        inside = (places >= first[:, None]) & (places < last[:, None])
        group[inside & (offset < counts)[:, None]] = turn
        offset, turn = np.maximum(offset + window, last), turn + 1
    return group


def _random_order(keys, starts, sizes) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle the words of each row, by sorting keys that carry the size and place of a word.

    Args:
        keys: uint64 [b, t], random bits.
        starts: bool [b, t], first tokens of the words.
        sizes: uint64 [words of the batch] in the order of `starts`, or one size for all.

    Returns:
        Sizes and first positions, int64 [b, t]; after the words of a row, 65535 and garbage.
    """
    packed = (keys & ~_LOW_32_BITS) | np.arange(keys.shape[1], dtype=np.uint64)
    packed[starts] |= sizes << _SIZE_SHIFT
    packed[~starts] = _NO_WORD
    packed.sort(axis=1)
    ordered_sizes = (packed >> _SIZE_SHIFT) & _LOW_16_BITS
    return ordered_sizes.astype(np.int64), (packed & _LOW_16_BITS).astype(np.int64)


def _at_positions(positions: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Mark the taken positions of each row: bool [b, t]."""
    marked = np.zeros(taken.shape, bool)
    row, rank = np.nonzero(taken)
    marked[row, positions[row, rank]] = True
    return marked


def _take_while_they_fit(sizes: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """Take sizes from left to right, passing over those that exceed what is left: bool [b, t]."""
    left = budget.copy()
    taken = np.zeros(sizes.shape, bool)
    for rank in range((sizes < MAX_LENGTH - 1).sum(1).max()):
        fits = sizes[:, rank] <= left
        taken[:, rank] = fits
        left -= sizes[:, rank] * fits
        if not left.any():
            break
    return taken


def first_positions(chosen: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Write the chosen positions of each row into `slots` slots: int64 and bool [b, p]."""
    valid = np.arange(slots) < chosen.sum(1)[:, None]
    positions = np.zeros(valid.shape, np.int64)
    positions[valid] = np.nonzero(chosen)[1]
    return positions, valid
