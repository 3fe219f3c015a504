"""Random numbers that are a pure function of where they are used.

A sequential generator gives a number that depends on how many were drawn before it; a
counter-based one hashes the coordinates of the draw instead. Row 7 of a data set then gets the same
mask whichever rows share its batch, on any number of processes, and after a restart at any step.

The hash is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
Generators", 2014, figure 17), applied once a coordinate:

    h <- mix(seed + G);  h <- mix(h + (c + 1) G)  for each coordinate c,  G = 2^64 / golden ratio

so that the last coordinate walks along an ordinary splitmix64 sequence. Not for cryptography.
"""

import numpy as np

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)


def _mix(state: np.ndarray) -> np.ndarray:
    """Scramble uint64 words, in place."""
    state ^= state >> np.uint64(30)
    state *= _FIRST_MULTIPLIER
    state ^= state >> np.uint64(27)
    state *= _SECOND_MULTIPLIER
    state ^= state >> np.uint64(31)
    return state


def _as_words(value: int | np.ndarray) -> np.ndarray:
    if isinstance(value, int):
        return np.array([value % 2**64], np.uint64)
    return np.atleast_1d(np.asarray(value)).astype(np.uint64)


def random_bits(seed: int, *coordinates: int | np.ndarray) -> np.ndarray:
    """64 random bits for every point of the broadcast coordinates.

    Args:
        seed: any integer (taken modulo 2^64).
        *coordinates: integers or integer arrays that broadcast together, the most specific last,
            e.g. `(stream, example [b, 1], position [1, t])`. Give each purpose its own stream.

    Returns:
        A uint64 array of the broadcast shape (at least one dimension).

    Example:
        >>> random_bits(1, 0, np.arange(3)[:, None], np.arange(5)).shape
        (3, 5)
    """
    state = _mix(_as_words(seed) + GOLDEN_GAMMA)
    for coordinate in coordinates:
        state = _mix(state + (_as_words(coordinate) + np.uint64(1)) * GOLDEN_GAMMA)
    return state


def uniform(bits: np.ndarray) -> np.ndarray:
    """Turn 64 random bits into float64 numbers in [0, 1), using the upper 53 bits.

    Example:
        >>> float(uniform(np.array([2**63], np.uint64))[0])
        0.5
    """
    return (bits >> np.uint64(11)) * 2.0**-53


def integers_below(bits: np.ndarray, limit: int) -> np.ndarray:
    """Turn 64 random bits into int64 integers in [0, limit).

    Args:
        bits: uint64 array of any shape, from `random_bits`.
        limit: the exclusive upper bound, at most 2^32 so that the bias stays below 2^-21.

    Raises:
        ValueError: `limit` is not between 1 and 2^32.
    """
    if not 1 <= limit <= 2**32:
        raise ValueError(f"Expected limit between 1 and 2**32. Received: limit={limit}.")
    return (uniform(bits) * limit).astype(np.int64)


def random_permutation(size: int, seed: int, *coordinates: int) -> np.ndarray:
    """Give a random order of `range(size)` (int64 [size]), the same with every numpy version.

    Args:
        size: number of items.
        seed: any integer.
        *coordinates: integers that name the permutation, e.g. `(stream, epoch)`.
    """
    return np.argsort(random_bits(seed, *coordinates, np.arange(size)), kind="stable")
