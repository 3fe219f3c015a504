"""Attention that remembers keys and values, for writing text a token at a time."""

import keras
from keras import ops

from keras_bert3.layers.masks import attention_mask as to_attention_mask
from keras_bert3.layers.self_attention import SelfAttention
from keras_bert3.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert3")
class CachedSelfAttention(SelfAttention):
    """`SelfAttention` that can also be asked step by step.

    Keys and values of earlier positions do not change in a causal model, so `step` computes those
    of the new positions alone and keeps them in a cache of fixed size. One step and one compiled
    program serve every position.
    """

    def empty_cache(self, batch, length):
        """Return keys and values for `length` positions, zero: twice `[b, k, h, d]`."""
        shape = (batch, length, self.num_heads, self.head_dim)
        return ops.zeros(shape, self.compute_dtype), ops.zeros(shape, self.compute_dtype)

    def step(self, hidden, cache, start, attention_mask):
        """Attend from new positions to cached ones and to themselves.

        Args:
            hidden: `[b, q, w]`, the new positions.
            cache: keys and values, `[b, k, h, d]` each.
            start: place in the cache of the first new position.
            attention_mask: as for `call`; keys are the places of the cache.

        Returns:
            The result `[b, q, w]`, and the cache with the new positions in it.
        """
        new = self.split_heads(self.key(hidden)), self.split_heads(self.value(hidden))
        key, value = (
            ops.slice_update(old, (0, start, 0, 0), ops.cast(entry, old.dtype))
            for old, entry in zip(cache, new, strict=True)
        )
        query = self.split_heads(self.query(hidden))
        mask = to_attention_mask(attention_mask)
        return self.gather(self.scores(query, key), value, mask), (key, value)


@keras.saving.register_keras_serializable(package="keras_bert3")
class CachedTransformerBlock(TransformerBlock):
    """`TransformerBlock` around a `CachedSelfAttention`."""

    def step(self, hidden, cache, start, attention_mask):
        """Run the block on new positions, without dropout; see `CachedSelfAttention.step`."""
        attended, cache = self.attention.step(hidden, cache, start, attention_mask)
        hidden = self.attention_norm(hidden + attended)
        return self.output_norm(hidden + self.feed_forward(hidden)), cache
