import keras
import numpy as np
import pytest
from keras import ops

from keras_bert3.layers import relative_positions as relative
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(8)


def delta(table, distance):
    return int(relative.rows_of(table, distance, 1, 1)[0])


def test_identity_is_equation_3():
    table = relative.identity_table(4)
    received = [delta(table, i) for i in (-9, -5, -4, -3, 0, 2, 3, 4, 9)]
    assert received == [0, 0, 0, 1, 4, 6, 7, 7, 7]


def bucket(distance, span, max_position):
    """One distance, from the description, in exact steps where they matter."""
    size, middle = min(abs(distance), max_position - 1), span // 2
    if size > middle:
        ratio = np.log(np.longdouble(size) / middle) / np.log(
            np.longdouble(max_position - 1) / middle
        )
        size = middle + int(np.ceil(ratio * (middle - 1) - np.longdouble(1e-12)))
    return int(np.sign(distance)) * size


@pytest.mark.parametrize("sizes", [(256, 512), (32, 128), (128, 512), (256, 1024), (64, 512)])
def test_log_buckets_by_the_formula_and_never_row_0(sizes):
    table = relative.log_bucket_table(*sizes)
    distances = np.arange(-sizes[1] - 100, sizes[1] + 101)
    received = [delta(table, int(d)) for d in distances]
    assert received == [bucket(int(d), *sizes) + sizes[0] for d in distances]
    assert min(received) == 1 and max(received) == 2 * sizes[0] - 1


def test_C13_buckets_depend_on_the_distance_alone():
    table = relative.log_bucket_table(256, 512)
    for length in (32, 64, 600):
        rows = relative.rows_of(table, length - 1, 2 * length, -1)
        assert rows[0] == delta(table, length - 1)
        assert rows[length - 1] == 256, "distance 0"


def test_rows_of_unknown_sizes_are_the_same():
    table = relative.log_bucket_table(8, 20)
    expected = relative.rows_of(table, 29, 60, -1)
    received = (
        relative.rows_of(table, ops.convert_to_tensor(29), ops.convert_to_tensor(60), -1)
        if keras.backend.backend() == "tensorflow"
        else expected
    )
    np.testing.assert_array_equal(to_numpy(received), expected)


def test_buckets_that_do_not_reach_the_end_are_refused():
    with pytest.raises(ValueError, match="span=64, max_position=32"):
        relative.log_bucket_table(64, 32)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 5), (6, 1), (4, 7), (256, 3)])
def test_relative_scores_equal_a_loop(queries, keys):
    vectors = RNG.normal(size=(2, queries, 3, 4)).astype("float32")
    rows = RNG.normal(size=(queries + keys, 3, 4)).astype("float32")
    expected = np.zeros((2, 3, queries, keys))
    for i in range(queries):
        for j in range(keys):
            at = queries - 1 - (i - j)
            expected[:, :, i, j] = (vectors[:, i] * rows[at]).sum(-1)
    received = to_numpy(relative.relative_scores(ops.convert_to_tensor(vectors), rows, keys))
    np.testing.assert_allclose(received, expected, atol=1e-5)


@pytest.mark.parametrize(("columns", "length"), [(9, 4), (12, 12), (13, 5), (8, 1)])
def test_windows_equal_slices(columns, length):
    scores = RNG.normal(size=(2, 3, 6, columns)).astype("float32")
    starts = RNG.integers(0, columns - length + 1, (2, 6)).astype("int32")
    starts[0, 0], starts[1, 5] = columns - length, 0
    received = to_numpy(relative.windows(ops.convert_to_tensor(scores), starts, length))
    for b, p in np.ndindex(2, 6):
        wanted = scores[b, :, p, starts[b, p] : starts[b, p] + length]
        np.testing.assert_array_equal(received[b, :, p], wanted)
    unknown = to_numpy(
        relative.windows(
            ops.convert_to_tensor(scores), ops.convert_to_tensor(starts), np.int32(length)
        )
    )
    np.testing.assert_array_equal(unknown, received)
