"""Relative positions without a look-up per pair: which row of the table belongs to a distance.

A relative score of query i and key j depends on the pair through the row delta(i, j) alone, and
delta depends on it through the distance i - j alone. So no pair needs a look-up of its own: score
each query with every distance, a row of q + k, and shift row i by i places (`skew`). Shifting
all rows at once is a reshape.
"""

import numpy as np
from keras import ops

BLOCK = 64
"""Vectors scored with the same distances: fewer waste less work, more need fewer slices."""


def identity_table(span):
    """Delta for distances of their own (He et al. 2021, DeBERTa, equation 3).

        delta(i, j) = clip(i - j + span, 0, 2 span - 1)

    Args:
        span: k of the paper, distances on either side that have rows (512).

    Returns:
        int32 `[2 span + 1]`: delta for i - j = -span ... span; beyond, it does not change.
    """
    distances = np.arange(-span, span + 1)
    return np.clip(distances + span, 0, 2 * span - 1).astype("int32")


def log_bucket_table(span, max_position):
    """Delta for distances in buckets that widen with the distance (DeBERTa v2 and v3).

        bucket(r) = r                                                            |r| <= m = span / 2
        bucket(r) = sign(r) (m + ceil(ln(|r| / m) / ln((N - 1) / m) (m - 1)))    else
        delta(i, j) = clip(bucket(i - j) + span, 0, 2 span - 1)

    Distances are cut at N - 1 first, as in microsoft/DeBERTa `make_log_bucket_position`, so that no
    distance falls into row 0, which training never touches. Computed in float64: float32 puts the
    largest distances of some sizes into the next bucket.

    Args:
        span: buckets on either side (256).
        max_position: N, the distance at which buckets end (512).

    Returns:
        int32 `[2 N - 1]`: delta for i - j = 1 - N ... N - 1; beyond, it does not change.

    Raises:
        ValueError: if the buckets do not reach from m to N - 1.
    """
    middle = span // 2
    if not 1 <= middle < max_position - 1:
        raise ValueError(
            "Expected buckets 2 <= span < 2 (max_position - 1). "
            f"Received: span={span}, max_position={max_position}"
        )
    distances = np.arange(1 - max_position, max_position)
    size = np.maximum(np.abs(distances), middle).astype("float64")
    steps = np.log(size / middle) / np.log((max_position - 1) / middle) * (middle - 1)
    far = np.sign(distances) * (np.ceil(steps) + middle)
    buckets = np.where(np.abs(distances) <= middle, distances, far).astype("int64")
    return np.clip(buckets + span, 0, 2 * span - 1).astype("int32")


def rows_of(table, first, count, step):
    """Delta for `count` distances `first, first + step, ...`.

    Args:
        table: as returned by `identity_table` or `log_bucket_table`.
        first: the first distance.
        count: how many.
        step: 1 or -1.

    Returns:
        int32 `[count]`: a numpy array where the sizes are known, else a tensor.
    """
    limit = len(table) // 2
    if isinstance(first, int) and isinstance(count, int):
        distances = first + step * np.arange(count)
        return table[np.clip(distances, -limit, limit) + limit]
    distances = first + step * ops.arange(count, dtype="int32")
    return ops.take(ops.convert_to_tensor(table), ops.clip(distances, -limit, limit) + limit)


def relative_scores(vectors, rows, length):
    """Score each vector with the distances from its place: `out[i, j] = vectors[i] . rows[i - j]`.

    Args:
        vectors: `[b, q, h, d]`.
        rows: `[q + k, h, d]`, for the distances i - j from q - 1 down to -k.
        length: k.

    Returns:
        `[b, h, q, k]`.
    """
    scores = ops.transpose(relative_blocks(vectors, rows, length), (2, 0, 1, 3, 4))
    return ops.reshape(scores, (-1, vectors.shape[2], ops.shape(vectors)[1], length))


def relative_blocks(vectors, rows, length):
    """As `relative_scores`, with the vectors in n blocks of B and the axes as they are computed.

    Vectors are taken `BLOCK` at a time where q and k are multiples of it: a block of B needs
    B + k of the q + k distances. Heads and blocks come first and stay there: only vectors are
    transposed, and scores, of which there are many more, are not.

    Returns:
        `[h, n, b, B, k]`.
    """
    _, places, heads, width = ops.shape(vectors)
    is_even = all(isinstance(n, int) and n % BLOCK == 0 for n in (places, length))
    block, blocks = (BLOCK, places // BLOCK) if is_even else (places, 1)
    parts = ops.transpose(rows, (1, 0, 2))
    if blocks > 1:
        parts = ops.reshape(_neighbours(parts, blocks, length), (heads * blocks, -1, width))
    vectors = ops.reshape(vectors, (-1, blocks, block, heads, width))
    vectors = ops.reshape(ops.transpose(vectors, (3, 1, 0, 2, 4)), (heads * blocks, -1, width))
    scores = ops.matmul(vectors, ops.transpose(parts, (0, 2, 1)))
    scores = ops.reshape(scores, (heads, blocks, -1, block, block + length))
    return skew(scores, length)


def _neighbours(rows, blocks, length):
    """Rows that each block of vectors needs: `[h, q + k, d]` -> `[h, n (B + k), d]`.

    Block n needs the B + k rows from q - (n + 1) B on. They overlap: cut into pieces of B first,
    each row has the gradients of its piece added up, not those of n tables, nearly all zeros.
    """
    pieces = ops.split(rows, blocks + length // BLOCK, axis=1)
    firsts = reversed(range(blocks))
    return ops.concatenate(
        [piece for first in firsts for piece in pieces[first : first + 1 + length // BLOCK]], axis=1
    )


def add_to_queries(scores, blocks):
    """Add `relative_blocks` of queries to scores `[b, h, q, k]`."""
    return _add(scores, ops.transpose(blocks, (2, 0, 1, 3, 4)))


def add_to_keys(scores, blocks):
    """Add `relative_blocks` of keys, `[h, n, b, B, q]`, to scores `[b, h, q, k]`."""
    return _add(scores, ops.transpose(blocks, (2, 0, 4, 1, 3)))


def _add(scores, parts):
    """Add parts whose axes are those of scores, one of them in two."""
    shape = ops.shape(scores)
    return ops.reshape(ops.reshape(scores, (-1, *ops.shape(parts)[1:])) + parts, (-1, *shape[1:]))


def skew(scores, length):
    """Shift row i to the left by q - 1 - i, all rows at once: `out[i, j] = in[i, q - 1 - i + j]`.

    Of the flat array of rows of W = q + k entries, entry (i, q - 1 - i + j) stands at
    i (W - 1) + q - 1 + j: without its last q entries it is an array of rows of W - 1, of which the
    first q - 1 entries go.

    Args:
        scores: `[h, n, b, q, q + k]`, a column for each distance from q - 1 down to -k.
        length: k.

    Returns:
        `[h, n, b, q, k]`.
    """
    heads, blocks, _, queries, columns = ops.shape(scores)
    flat = ops.reshape(scores, (heads, blocks, -1, queries * columns))
    flat, _ = _split(flat, queries * (columns - 1))
    shifted = ops.reshape(flat, (heads, blocks, -1, queries, columns - 1))
    return _split(shifted, queries - 1)[1]


def _split(x, place):
    """Cut the last axis in two; where sizes are known, gradients are put together in one piece."""
    if isinstance(place, int) and isinstance(x.shape[-1], int):
        return ops.split(x, [place], axis=-1)
    return x[..., :place], x[..., place:]


def windows(scores, starts, length):
    """Cut from each row the entries from its own start on: `out[p, j] = in[p, starts[p] + j]`.

    Where sizes are known this shifts by the binary digits of the starts, largest first, each shift
    a choice between two slices: no look-up, whatever the starts.

    Args:
        scores: `[b, h, p, n]`.
        starts: integers `[b, p]` in [0, n - length].
        length: k, entries to cut.

    Returns:
        `[b, h, p, k]`.
    """
    columns = ops.shape(scores)[-1]
    if not (isinstance(columns, int) and isinstance(length, int)):
        places = starts[:, None, :, None] + ops.arange(length, dtype="int32")
        places = ops.broadcast_to(places, (*ops.shape(scores)[:-1], length))
        return ops.take_along_axis(scores, places, axis=-1)
    starts = starts[:, None, :, None]
    digits = (columns - length).bit_length()
    missing = max(length + 2**digits - 1 - columns, 0)
    scores = ops.pad(scores, ((0, 0), (0, 0), (0, 0), (0, missing)))
    for shift in (2**digit for digit in reversed(range(digits))):
        kept = length + shift - 1
        is_set = ops.not_equal(starts // shift % 2, 0)
        scores = ops.where(is_set, scores[..., shift : shift + kept], scores[..., :kept])
    return scores[..., :length]
