"""From rows of the example table to sequences."""

from types import SimpleNamespace

import numpy as np

from keras_bert3.data.assembly import assemble

IDS = SimpleNamespace(pad_id=9, cls_id=2, sep_id=3)


def test_pair_and_single_run():
    tokens = np.arange(100, 130, dtype=np.uint16)
    rows = np.array([[4, 3, 20, 2, 0], [0, 1, 29, 1, 1], [27, 3, 0, 0, 0]])
    token_ids, segment_ids, padding_mask = assemble(tokens, rows, 9, IDS)
    assert token_ids.tolist() == [
        [2, 104, 105, 106, 3, 120, 121, 3, 9],
        [2, 100, 3, 129, 3, 9, 9, 9, 9],
        [2, 127, 128, 129, 3, 9, 9, 9, 9],
    ]
    assert segment_ids.tolist() == [
        [0, 0, 0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 0, 0, 0, 0],
        [0] * 9,
    ]
    assert padding_mask.sum(1).tolist() == [8, 5, 5]
    assert [a.dtype for a in (token_ids, segment_ids, padding_mask)] == [np.int32, np.int32, bool]


def test_rows_of_full_length_equal_a_plain_loop():
    generator = np.random.default_rng(1)
    tokens = generator.integers(10, 5000, 4000).astype(np.uint16)
    rows = generator.integers(0, 3900, (300, 5))
    rows[:, 1], rows[:, 3] = generator.integers(1, 15, 300), generator.integers(1, 15, 300)
    token_ids, segment_ids, padding_mask = assemble(tokens, rows, 31, IDS)
    for row, (a, n, b, m, _) in enumerate(rows):
        expected = [2, *tokens[a : a + n], 3, *tokens[b : b + m], 3]
        length = len(expected)
        assert token_ids[row].tolist() == expected + [9] * (31 - length)
        assert segment_ids[row].tolist() == [0] * (n + 2) + [1] * (m + 1) + [0] * (31 - length)
        assert padding_mask[row].tolist() == [True] * length + [False] * (31 - length)
