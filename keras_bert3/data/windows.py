"""Long texts as overlapping windows: nothing is cut off, and each token has one best window."""

import numpy as np

SHORTEST_LENGTH = 32
"""Rows are padded to this many tokens, or to it times 2, 4, 8 ...: few lengths, few programs."""


def window_spans(length: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Cut `length` tokens into windows of at most `room` that begin `stride` tokens apart.

    The last window ends with the text (google-research/bert `run_squad.py`, "sliding window").

    Args:
        length: tokens of the text; without any there is one empty window.
        room: tokens that a window holds.
        stride: tokens from the beginning of one window to that of the next.

    Returns:
        Pairs (first, end), the end excluded.

    Raises:
        ValueError: unless 1 <= stride <= room; a larger stride would leave tokens out.

    Example: `window_spans(10, 6, 3)` is `[(0, 6), (3, 9), (6, 10)]`.
    """
    if not 1 <= stride <= room:
        raise ValueError(
            "Expected a stride from 1 to the tokens that fit in a window. "
            f"Received: stride={stride}, room={room}"
        )
    spans = [(0, min(length, room))]
    while spans[-1][1] < length:
        first = spans[-1][0] + stride
        spans.append((first, min(length, first + room)))
    return spans


def best_windows(spans: list[tuple[int, int]], length: int) -> np.ndarray:
    """Return for each token the window in which it has the most context.

    The context is the smaller of the numbers of tokens on its left and on its right, plus a
    hundredth of the window's length; the first window wins a tie (google-research/bert
    `run_squad.py`, `_check_is_max_context`).

    Args:
        spans: of the windows, as `window_spans` returns them.
        length: tokens of the text.

    Returns:
        int `[length]`, indices into `spans`.

    Example: `best_windows([(0, 6), (3, 9)], 9).tolist()` is `[0, 0, 0, 0, 0, 1, 1, 1, 1]`.
    """
    contexts = np.full((len(spans), length), -1.0)
    for window, (first, end) in enumerate(spans):
        places = np.arange(end - first)
        contexts[window, first:end] = np.minimum(places, places[::-1]) + 0.01 * (end - first)
    return contexts.argmax(0)


def padded_length(longest: int, most: int) -> int:
    """Return the length to which a batch is padded: 32, 64, 128 ..., but never above `most`.

    Example: `[padded_length(n, 384) for n in (7, 40, 300)]` is `[32, 64, 384]`.
    """
    length = SHORTEST_LENGTH
    while length < longest:
        length *= 2
    return min(length, most)
