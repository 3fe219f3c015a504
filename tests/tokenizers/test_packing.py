import numpy as np
import pytest

from keras_bert3.tokenizers.packing import pack, truncated_lengths

IDS = {"cls_id": 1, "sep_id": 2, "pad_id": 9}


def popped_lengths(first, second, room):
    """The published loop: pop from the longer text, from the second on a tie."""
    first, second = ["a"] * first, ["b"] * second
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return len(first), len(second)


def test_truncation_equals_popping_one_by_one():
    for first in range(14):
        for second in range(14):
            for room in range(2, 28):
                expected = popped_lengths(first, second, room)
                assert truncated_lengths(first, second, room) == expected, (first, second, room)


def test_T13_pair_truncation_pops_from_the_longer_text():
    packed = pack([[11, 12, 13, 14]], [[21, 22]], sequence_length=6, **IDS)
    assert packed["token_ids"].tolist() == [[1, 11, 12, 2, 21, 2]]
    assert packed["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1]]
    assert packed["padding_mask"].all()


def test_T12_an_empty_text_is_packed_and_no_row_is_lost():
    packed = pack([[], [5]], sequence_length=4, **IDS)
    assert packed["token_ids"].tolist() == [[1, 2, 9, 9], [1, 5, 2, 9]]
    assert packed["padding_mask"].tolist() == [[True, True, False, False], [True] * 3 + [False]]
    pairs = pack([[], []], [[], [7]], **IDS)
    assert pairs["token_ids"].tolist() == [[1, 2, 2, 9], [1, 2, 7, 2]]
    assert pairs["segment_ids"].tolist() == [[0, 0, 1, 0], [0, 0, 1, 1]]


def test_T16_one_long_row_is_cut_alone_as_in_a_batch():
    long = list(range(100, 700))
    alone = pack([long], sequence_length=512, **IDS)["token_ids"]
    batch = pack([[5], long], sequence_length=512, **IDS)["token_ids"]
    assert alone.shape == (1, 512)
    assert alone[0].tolist() == [1, *long[:510], 2]
    np.testing.assert_array_equal(batch[1], alone[0])


def test_types_and_an_empty_batch():
    packed = pack([[5, 6]], [[7]], **IDS)
    kinds = {key: value.dtype.name for key, value in packed.items()}
    assert kinds == {"token_ids": "int32", "segment_ids": "int32", "padding_mask": "bool"}
    assert pack([], sequence_length=8, **IDS)["token_ids"].shape == (0, 8)
    assert pack([], **IDS)["token_ids"].shape == (0, 2)


def test_lengths_follow_the_batch():
    rows = [[5] * 3, [5] * 9]
    assert pack(rows, **IDS)["token_ids"].shape == (2, 11)
    assert pack(rows, pad_to_multiple_of=8, **IDS)["token_ids"].shape == (2, 16)
    assert pack([[5] * 6], pad_to_multiple_of=8, **IDS)["token_ids"].shape == (1, 8)
    capped = pack(rows, max_sequence_length=10, pad_to_multiple_of=8, **IDS)
    assert capped["token_ids"].shape == (2, 10)
    assert capped["token_ids"][1].tolist() == [1, *[5] * 8, 2]


def test_arrays_do_as_rows_and_inputs_stay_untouched():
    first, second = [np.arange(5)], [[7, 8]]
    packed = pack(first, second, sequence_length=7, **IDS)
    assert packed["token_ids"].tolist() == [[1, 0, 1, 2, 7, 8, 2]]
    assert first[0].tolist() == [0, 1, 2, 3, 4] and second == [[7, 8]]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (([[5]],), {"sequence_length": 2}, "at least 3 .* Received: 2"),
        (([[5]], [[6]]), {"sequence_length": 4}, "at least 5 .* Received: 4"),
        (([[5]],), {"max_sequence_length": 0}, "at least 3 .* Received: 0"),
        (([[5]], [[6], [7]]), {}, "Received: 1 and 2"),
        (([5, 6],), {}, "list of lists of ids. Received: the row 5"),
        (([[5]],), {"sequence_length": 8, "pad_to_multiple_of": 8}, "only where sequence_length"),
        (([[5]],), {"pad_to_multiple_of": 0}, "at least 1. Received: 0"),
    ],
)
def test_refusals(rows, options, message):
    with pytest.raises(ValueError, match=message):
        pack(*rows, **options, **IDS)
