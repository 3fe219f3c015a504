"""Replaced-token detection: a generator fills the masks, a discriminator finds what it filled in.

Clark et al. 2020 (ELECTRA), section 2; He, Gao & Chen 2021 (DeBERTa v3), section 3.1. All of it is
computed where the model is, inside the compiled step: the samples depend on the generator's logits.
"""

import keras
from keras import ops


def sample_tokens(logits, seed, temperature=1.0):
    """Draw a token for every prediction, `x ~ softmax(logits / temperature)`; no gradient passes.

    Args:
        logits: `[b, p, v]`, of any float dtype.
        seed: a `keras.random.SeedGenerator`.
        temperature: 1 in the papers.

    Returns:
        int32 `[b, p]`.
    """
    positions, size = ops.shape(logits)[1:]
    flat = ops.reshape(ops.stop_gradient(ops.cast(logits, "float32")), (-1, size))
    drawn = keras.random.categorical(flat / temperature, 1, dtype="int32", seed=seed)
    return ops.reshape(drawn, (-1, positions))


def at_positions(values, positions, length):
    """Spread values over the sequence by comparison, without a scatter.

    Slots at position 0 are unused: [CLS] stands there, and is never predicted. Of two slots at one
    position the larger value stays.

    Args:
        values: integers from 0, `[b, p]`.
        positions: integers `[b, p]`.
        length: q.

    Returns:
        int32 `[b, q]`: the values at their positions, 0 elsewhere.
    """
    positions, values = ops.cast(positions, "int32"), ops.cast(values, "int32")
    places = ops.arange(length, dtype="int32")[None, None]
    here = ops.logical_and(positions[:, :, None] == places, positions[:, :, None] > 0)
    return ops.max(ops.where(here, values[:, :, None], 0), axis=1)


def replace_tokens(token_ids, positions, sampled):
    """Put the sampled tokens where tokens were masked.

    Args:
        token_ids: integers `[b, q]`, the masked ids.
        positions: integers `[b, p]`; unused slots hold 0.
        sampled: integers `[b, p]`.

    Returns:
        int32 `[b, q]`, without any mask where all positions are used that were masked.
    """
    length = ops.shape(token_ids)[1]
    is_predicted = at_positions(ops.ones_like(positions), positions, length)
    replaced = at_positions(sampled, positions, length)
    return ops.where(is_predicted > 0, replaced, ops.cast(token_ids, "int32"))


def replaced_labels(positions, sampled, original, length):
    """Tell which tokens are not the original ones; a sample that guessed right is no replacement.

    Args:
        positions: integers `[b, p]`; unused slots hold 0.
        sampled: integers `[b, p]`.
        original: integers `[b, p]`, the hidden tokens.
        length: q.

    Returns:
        int32 `[b, q]`, 1 for a replaced token.
    """
    differs = ops.cast(sampled, "int32") != ops.cast(original, "int32")
    return at_positions(ops.cast(differs, "int32"), positions, length)
