"""Attention masks: booleans, true where a query may look at a key, until the softmax."""

import keras
from keras import ops


def attention_mask(mask):
    """Bring a mask to the shape of attention scores.

    Args:
        mask: `[b, k]` (a padding mask: which keys are real), `[b, q, k]` or `[b, 1 or h, q, k]`, of
            any dtype; zero means hidden.

    Returns:
        Booleans that broadcast against `[b, h, q, k]`.

    Raises:
        ValueError: for a mask of any other rank.
    """
    mask = ops.convert_to_tensor(mask)
    if len(mask.shape) not in (2, 3, 4):
        raise ValueError(
            "Expected an attention mask of shape (batch, keys), (batch, queries, keys) or "
            f"(batch, heads, queries, keys). Received: shape={tuple(mask.shape)}"
        )
    if keras.backend.standardize_dtype(mask.dtype) != "bool":
        mask = ops.not_equal(mask, 0)
    if len(mask.shape) == 2:
        return ops.expand_dims(mask, (1, 2))
    if len(mask.shape) == 3:
        return ops.expand_dims(mask, 1)
    return mask


def causal_mask(length):
    """Let position q look at keys k <= q only: booleans `[1, 1, q, k]`.

    GPT-1 (Radford et al. 2018, section 3.1), and BERT's left-to-right ablation.
    """
    positions = ops.arange(length, dtype="int32")
    return (positions[:, None] >= positions[None, :])[None, None]


def masked_softmax(scores, mask=None):
    """Softmax over keys in float32, hidden keys at exactly 0.

    Args:
        scores: `[b, h, q, k]`, any float dtype.
        mask: booleans that broadcast against `scores`, or None.

    Returns:
        Probabilities `[b, h, q, k]` in the dtype of `scores`. Those of a query that may see no key
        mean nothing, but are finite; see `seeing`.
    """
    dtype = keras.backend.standardize_dtype(scores.dtype)
    scores = ops.cast(scores, "float32")
    if scores.shape[-1] == 1:  # Keras warns of a softmax over one value, and it is always 1
        return ops.cast(ops.ones_like(scores), dtype)
    if mask is not None:
        # exp(-1e9 - max) is exactly 0 in float32 beside any score that half precision can hold.
        scores = scores + (ops.cast(mask, "float32") - 1.0) * 1e9
    return ops.cast(ops.softmax(scores, axis=-1), dtype)


def seeing(mask):
    """Tell which queries may see a key.

    Args:
        mask: booleans that broadcast against `[b, h, q, k]`.

    Returns:
        Booleans that broadcast against what heads found, `[b, q, h, d]`.
    """
    return ops.transpose(ops.any(mask, axis=-1, keepdims=True), (0, 2, 1, 3))
