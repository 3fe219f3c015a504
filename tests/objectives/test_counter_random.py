"""Counter-based random numbers: the published constants, uniformity, independence."""

import numpy as np
import pytest

from keras_bert3.objectives.counter_random import (
    integers_below,
    random_bits,
    random_permutation,
    uniform,
)

MODULUS = 2**64
GAMMA = 0x9E3779B97F4A7C15


def splitmix(state):
    """The output function of splitmix64 in Python's integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % MODULUS
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % MODULUS
    return state ^ (state >> 31)


def test_first_numbers_of_splitmix64_with_seed_0():
    # The sequence printed by the public reference implementation for seed 0.
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [splitmix((i + 1) * GAMMA % MODULUS) for i in range(3)] == known
    assert int(random_bits(0)[0]) == known[0]


def test_bits_equal_the_formula_in_python_integers():
    for seed in (0, 1, -5, 2**70 + 3):
        state = splitmix((seed + GAMMA) % MODULUS)
        for coordinate in (7, 0, 123456789):
            state = splitmix((state + (coordinate + 1) * GAMMA) % MODULUS)
        assert int(random_bits(seed, 7, 0, 123456789)[0]) == state


def test_a_point_does_not_depend_on_the_others():
    grid = random_bits(3, 1, np.arange(50)[:, None], np.arange(20))
    assert grid.shape == (50, 20)
    assert int(random_bits(3, 1, 17, 4)[0]) == int(grid[17, 4])


@pytest.mark.parametrize("axis", ["seed", "stream", "index", "position"])
def test_uniform_and_independent_along_every_coordinate(axis):
    count = 4000 if axis == "seed" else 40000
    if axis == "seed":
        bits = np.concatenate([random_bits(seed, 0, 0, 0) for seed in range(count)])
    else:
        coordinates = {"stream": 0, "index": 0, "position": 0, axis: np.arange(count)}
        bits = random_bits(1, *coordinates.values())
    numbers = uniform(bits)
    histogram = np.histogram(numbers, 100, (0, 1))[0]
    chi_square = ((histogram - count / 100) ** 2 / (count / 100)).sum()
    assert 55 < chi_square < 160  # 99 degrees of freedom, about five standard deviations
    for lag in (1, 2, 7):
        correlation = np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(count)
    ones = np.unpackbits(bits.view(np.uint8)).reshape(count, 64).mean(0)
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(count)


def test_streams_seeds_and_neighbouring_rows_are_uncorrelated():
    positions = np.arange(40000)
    base = uniform(random_bits(1, 0, 5, positions))
    for other in ((1, 1, 5), (2, 0, 5), (1, 0, 6), (1, 5, 0)):
        numbers = uniform(random_bits(*other, positions))
        assert abs(np.corrcoef(base, numbers)[0, 1]) < 5 / np.sqrt(len(positions))


def test_integers_cover_the_range_evenly():
    drawn = integers_below(random_bits(4, np.arange(70000)), 7)
    assert np.bincount(drawn, minlength=7).min() > 9500
    assert drawn.max() == 6
    assert integers_below(np.array([2**64 - 1], np.uint64), 7).tolist() == [6]
    with pytest.raises(ValueError, match="Received: limit=0"):
        integers_below(random_bits(0), 0)


def test_permutations_are_permutations_and_differ():
    orders = [random_permutation(1000, 1, 0, epoch) for epoch in range(3)]
    for order in orders:
        assert sorted(order.tolist()) == list(range(1000))
    assert (orders[0] == orders[1]).sum() < 20
    assert (random_permutation(1000, 1, 0, 2) == orders[2]).all()
