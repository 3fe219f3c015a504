"""GPT-1's summary of a sequence."""

from keras import ops


def last_token(hidden, padding_mask):
    """h[n], n the place of the last real token, wherever padding is.

    Radford et al. 2018, section 3.2: that token is the classify token, the only one that has seen
    the whole row. A row without a real token gives its first vector.

    Args:
        hidden: `[b, q, w]`.
        padding_mask: `[b, q]`, nonzero for real tokens.

    Returns:
        `[b, w]`.
    """
    real = ops.cast(ops.not_equal(ops.cast(padding_mask, "int32"), 0), "int32")
    places = ops.cumsum(ops.ones_like(real), axis=1) - 1
    last = ops.max(real * places, axis=1)
    return ops.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0]
