import numpy as np
import pytest

from keras_bert3.data.windows import best_windows, padded_length, window_spans


@pytest.mark.parametrize("length", range(0, 60, 7))
@pytest.mark.parametrize(("room", "stride"), [(1, 1), (6, 3), (10, 10), (12, 5)])
def test_windows_leave_nothing_out_and_end_with_the_text(length, room, stride):
    spans = window_spans(length, room, stride)
    covered = sorted({place for first, end in spans for place in range(first, end)})
    assert covered == list(range(length))
    assert all(end - first <= room for first, end in spans)
    assert all(end - first == room for first, end in spans[:-1])
    assert [first for first, _ in spans] == [i * stride for i in range(len(spans))]
    assert spans[-1][1] == length
    assert all(end < length for _, end in spans[:-1])


def test_a_text_without_tokens_has_one_empty_window():
    assert window_spans(0, 5, 2) == [(0, 0)]
    assert best_windows([(0, 0)], 0).shape == (0,)


@pytest.mark.parametrize("stride", [0, 7])
def test_strides_that_would_skip_tokens_are_refused(stride):
    with pytest.raises(ValueError, match=f"Received: stride={stride}, room=6"):
        window_spans(10, 6, stride)


@pytest.mark.parametrize(("length", "room", "stride"), [(30, 12, 5), (9, 4, 1), (5, 9, 9)])
def test_the_best_window_has_most_context(length, room, stride):
    spans = window_spans(length, room, stride)
    best = best_windows(spans, length)
    for token in range(length):
        scores = []
        for first, end in spans:
            if first <= token < end:
                context = min(token - first, end - 1 - token)
                scores.append(context + 0.01 * (end - first))
            else:
                scores.append(float("-inf"))
        assert best[token] == int(np.argmax(scores))


def test_of_equal_contexts_the_longer_window_is_better():
    assert best_windows([(0, 5), (2, 8)], 8).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert best_windows([(0, 6), (2, 7)], 7).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_lengths_are_few():
    lengths = {padded_length(longest, 384) for longest in range(1, 385)}
    assert lengths == {32, 64, 128, 256, 384}
    assert all(padded_length(n, 384) >= n for n in range(1, 385))
    assert padded_length(7, 16) == 16
