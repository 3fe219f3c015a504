import numpy as np
import pytest

pytest.importorskip("tensorflow", exc_type=ImportError)

import tensorflow as tf

from keras_bert3.serving import graph_packing
from keras_bert3.tokenizers import packing

SPECIAL = {"cls_id": 1, "sep_id": 2, "pad_id": 0}


def rows(sizes, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(3, 99, size).tolist() for size in sizes]


def ragged(lists):
    return tf.RaggedTensor.from_row_lengths(
        np.concatenate([*lists, []]).astype("int32"), [len(row) for row in lists]
    )


@pytest.mark.parametrize("limit", [None, 40, 19, 5])
@pytest.mark.parametrize("sizes", [[3, 30, 17], [0, 5], [6], [], [37, 38, 0, 1]])
@pytest.mark.parametrize("is_pair", [False, True])
def test_rows_are_those_of_python(sizes, limit, is_pair):
    first, second = rows(sizes, 0), rows(sizes[::-1], 1) if is_pair else None
    columns = None if second is None else ragged(second)
    found = graph_packing.pack(ragged(first), columns, limit, **SPECIAL)
    wanted = packing.pack(
        first,
        second,
        max_sequence_length=limit,
        pad_to_multiple_of=graph_packing.MULTIPLE,
        **SPECIAL,
    )
    for name in ("token_ids", "segment_ids"):
        np.testing.assert_array_equal(getattr(found, name), wanted[name])
    np.testing.assert_array_equal(found.lengths, wanted["padding_mask"].sum(1))


@pytest.mark.parametrize(("limit", "columns"), [(None, 24), (24, 24), (23, 23), (17, 17)])
def test_plain_rows_are_padded_to_a_multiple_up_to_their_limit(limit, columns):
    ids = rows([2, 18], 0)
    found = graph_packing.plain(ragged(ids), limit, 0)
    assert found.token_ids.shape == (2, columns)
    for row, length, one in zip(found.token_ids.numpy(), found.lengths, ids, strict=True):
        assert row.tolist() == one[:limit] + [0] * (columns - int(length))
