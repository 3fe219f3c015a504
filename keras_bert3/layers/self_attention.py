"""Multi-head scaled dot-product attention."""

import keras
from keras import ops

from keras_bert3.layers.initializers import fresh
from keras_bert3.layers.masks import attention_mask as to_attention_mask
from keras_bert3.layers.masks import masked_softmax, seeing


@keras.saving.register_keras_serializable(package="keras_bert3")
class SelfAttention(keras.layers.Layer):
    """Every position gathers from every position it may see.

        Attention(Q, K, V) = softmax(Q K^T / sqrt(d)) V

    for each head, the heads' results concatenated and projected (Vaswani et al. 2017, section
    3.2). Subclasses change what a query thinks of a key by overriding `scores` alone.

    Args:
        num_heads: number of heads h; must divide the width of the model.
        dropout: rate on the attention probabilities (BERT: 0.1).
        kernel_initializer: for the four kernels; biases start at 0.

    Call arguments:
        hidden: `[b, q, w]`, whose positions ask.
        memory: `[b, k, w]`, whose positions answer; `hidden` itself when absent.
        attention_mask: `[b, k]`, `[b, q, k]` or `[b, h, q, k]`, nonzero where a query may look.
            A query that may look nowhere receives the output projection's bias.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.

    Raises:
        ValueError: if `num_heads` does not divide the width.
    """

    def __init__(self, num_heads, dropout=0.1, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, hidden_shape):
        """Create the projections for inputs of shape `[b, q, w]`."""
        width = hidden_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                "Expected `num_heads` to divide the width of the model. "
                f"Received: num_heads={self.num_heads}, width={width}"
            )
        self.head_dim = width // self.num_heads
        for name in ("query", "key", "value", "output_projection"):
            setattr(self, name, self._dense(width, name))
            getattr(self, name).build(hidden_shape)

    def _dense(self, width, name):
        kernel_initializer = fresh(self.kernel_initializer)
        return keras.layers.Dense(
            width, kernel_initializer=kernel_initializer, dtype=self.dtype_policy, name=name
        )

    def call(self, hidden, memory=None, attention_mask=None, training=None):
        """Attend from `hidden` to `memory`."""
        memory = hidden if memory is None else memory
        query = self.split_heads(self.query(hidden))
        key = self.split_heads(self.key(memory))
        value = self.split_heads(self.value(memory))
        mask = None if attention_mask is None else to_attention_mask(attention_mask)
        return self.gather(self.scores(query, key), value, mask, training)

    def scores(self, query, key):
        """Score each key for each query: `[b, q, h, d]`, `[b, k, h, d]` -> `[b, h, q, k]`."""
        return ops.einsum("bqhd,bkhd->bhqk", query * self.head_dim**-0.5, key)

    def gather(self, scores, value, mask=None, training=None):
        """Average values `[b, k, h, d]` by scores `[b, h, q, k]`, and project: `[b, q, w]`."""
        probabilities = self.dropout(masked_softmax(scores, mask), training=training)
        context = ops.einsum("bhqk,bkhd->bqhd", probabilities, value)
        if mask is not None:
            context *= ops.cast(seeing(mask), context.dtype)
        return self.output_projection(self.merge_heads(context))

    def split_heads(self, x):
        """`[b, q, w]` -> `[b, q, h, d]`: head after head along the width."""
        return ops.reshape(x, (*self._leading(x), self.num_heads, self.head_dim))

    def merge_heads(self, x):
        """`[b, q, h, d]` -> `[b, q, w]`."""
        return ops.reshape(x, (*self._leading(x), self.num_heads * self.head_dim))

    @staticmethod
    def _leading(x):
        """Batch and length, as -1 for the batch so that one unknown at most remains."""
        return -1, ops.shape(x)[1]

    def compute_output_shape(self, hidden_shape):
        """The shape of `hidden`."""
        return hidden_shape

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout.rate,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
