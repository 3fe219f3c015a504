"""Token ids of texts to the arrays a BERT model reads: framing, truncation, padding."""

from collections.abc import Sequence

import numpy as np

Rows = Sequence[Sequence[int]]


def pack(
    first: Rows,
    second: Rows | None = None,
    sequence_length: int | None = None,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int,
    max_sequence_length: int | None = None,
    pad_to_multiple_of: int | None = None,
) -> dict[str, np.ndarray]:
    """Frame, truncate and pad a batch: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

    The input representation of BERT, section 3 and figure 2. Segment 0 runs to the first [SEP],
    segment 1 is the second text with its [SEP]; padding has segment 0. Rows that are too long lose
    ids as in `truncated_lengths`.

    Args:
        first: a list of token ids for each row, without special tokens; may be empty.
        second: as many lists again for pairs, or None.
        sequence_length: the length L of every row; None takes the longest row of the batch.
        cls_id: the id of [CLS].
        sep_id: the id of [SEP].
        pad_id: the id of [PAD].
        max_sequence_length: where `sequence_length` is None, the length rows are truncated to;
            None truncates nothing.
        pad_to_multiple_of: where `sequence_length` is None, round L up to such a multiple, though
            never above `max_sequence_length`: few distinct lengths mean few compilations.

    Returns:
        Arrays [batch, L]: `token_ids` int32, `segment_ids` int32 and `padding_mask` bool, True at
        real tokens.

    Raises:
        ValueError: when a length has no room for the special tokens and one id of each text, when
            `sequence_length` comes with one of the options for None, or when the rows of `first`
            and `second` differ in number.

    Example:
    ```python
    pack([[7, 8, 9, 10]], [[20, 21]], 6, cls_id=1, sep_id=2, pad_id=0)["token_ids"]
    # [[1, 7, 8, 2, 20, 2]]
    ```
    """
    _check_rows(first, second)
    limit = _limit(second, sequence_length, max_sequence_length, pad_to_multiple_of)
    frames = [_frame(index, first, second, limit, (cls_id, sep_id)) for index in range(len(first))]
    length = sequence_length
    if length is None:
        fewest = 2 if second is None else 3
        longest = max((len(ids) for ids, _ in frames), default=fewest)
        multiple = pad_to_multiple_of or 1
        length = -(-longest // multiple) * multiple
        length = length if limit is None else min(length, limit)
    return _fill(frames, length, pad_id)


def truncated_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many ids of each text of a pair are kept, so that both fit.

    One id at a time goes from the end of the longer text, of the second where they are equally
    long, until the sum is at most `room` (google-research/bert `run_classifier.py`,
    `_truncate_seq_pair`). In closed form: a text shorter than its half keeps all, else they share.

    Args:
        first: ids of the first text.
        second: ids of the second text.
        room: ids that may stay in total.

    Example: `truncated_lengths(4, 2, 3)` is `(2, 1)`.
    """
    half = room // 2
    if first + second <= room:
        return first, second
    if second <= half:
        return room - second, second
    if first <= room - half:
        return first, room - first
    return room - half, half


def _check_rows(first: Rows, second: Rows | None) -> None:
    """Raise ValueError unless both are lists of rows, as many in one as in the other."""
    for rows in (first,) if second is None else (first, second):
        flat = next((row for row in rows if np.ndim(row) != 1), None)
        if isinstance(rows, str) or flat is not None:
            raise ValueError(f"Expected a list of lists of ids. Received: the row {flat!r}")
    if second is not None and len(first) != len(second):
        raise ValueError(
            f"Expected as many second texts as first. Received: {len(first)} and {len(second)}"
        )


def _limit(
    second: Rows | None,
    sequence_length: int | None,
    max_sequence_length: int | None,
    pad_to_multiple_of: int | None,
) -> int | None:
    """Return the length rows are truncated to, or None, after checking the options."""
    options = (max_sequence_length, pad_to_multiple_of)
    if sequence_length is not None and options != (None, None):
        raise ValueError(
            f"Expected max_sequence_length and pad_to_multiple_of only where sequence_length is "
            f"None. Received: sequence_length {sequence_length} with {options}"
        )
    if pad_to_multiple_of is not None and pad_to_multiple_of < 1:
        raise ValueError(
            f"Expected pad_to_multiple_of of at least 1. Received: {pad_to_multiple_of}"
        )
    limit = max_sequence_length if sequence_length is None else sequence_length
    fewest = 3 if second is None else 5
    if limit is not None and limit < fewest:
        raise ValueError(
            f"Expected a sequence length of at least {fewest} (the special tokens and one id of "
            f"each text). Received: {limit}"
        )
    return limit


def _frame(
    index: int, first: Rows, second: Rows | None, limit: int | None, frame_ids: tuple[int, int]
) -> tuple[list[int], int]:
    """Return the ids of one row with its special tokens, and where segment 1 starts."""
    cls_id, sep_id = frame_ids
    ids = list(first[index])
    if second is None:
        kept = ids if limit is None else ids[: limit - 2]
        return [cls_id, *kept, sep_id], len(kept) + 2
    others = list(second[index])
    lengths = len(ids), len(others)
    kept, others_kept = lengths if limit is None else truncated_lengths(*lengths, limit - 3)
    row = [cls_id, *ids[:kept], sep_id, *others[:others_kept], sep_id]
    return row, kept + 2


def _fill(frames: list[tuple[list[int], int]], length: int, pad_id: int) -> dict[str, np.ndarray]:
    """Write framed rows into arrays [batch, length]."""
    token_ids = np.full((len(frames), length), pad_id, dtype="int32")
    segment_ids = np.zeros((len(frames), length), dtype="int32")
    padding_mask = np.zeros((len(frames), length), dtype="bool")
    for row, (ids, segment_start) in enumerate(frames):
        token_ids[row, : len(ids)] = ids
        segment_ids[row, segment_start : len(ids)] = 1
        padding_mask[row, : len(ids)] = True
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
