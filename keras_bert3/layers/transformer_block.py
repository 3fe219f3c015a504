"""The post-norm Transformer block that all three papers share."""

import keras


@keras.saving.register_keras_serializable(package="keras_bert3")
class TransformerBlock(keras.layers.Layer):
    """Attention, add & norm, feed-forward, add & norm.

        a = LayerNorm(x + Dropout(Attention(x)))
        y = LayerNorm(a + Dropout(FeedForward(a)))

    The encoder layer of Vaswani et al. 2017 (figure 1, left), used by BERT, GPT-1 and DeBERTa. What
    tells the papers apart is the attention layer put in and the mask it is given.

    Args:
        attention: a layer `[b, q, w] -> [b, q, w]` that takes `memory` and `attention_mask`.
        feed_forward: a layer `[b, q, w] -> [b, q, w]`.
        dropout: rate on each sublayer's output before it is added (0.1 in the papers).
        layer_norm_epsilon: 1e-12 in BERT, 1e-5 in GPT-1, 1e-7 in DeBERTa.

    Call arguments:
        hidden: `[b, q, w]`, the queries and the residual stream.
        memory: `[b, k, w]`, what is attended to; `hidden` itself when absent. The enhanced mask
            decoder of DeBERTa asks the last block with queries of its own.
        attention_mask: nonzero where a query may look at a key, see `SelfAttention`.
        attention_inputs: whatever else the attention layer takes.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.

    Example:
        >>> block = TransformerBlock(SelfAttention(num_heads=4), FeedForward(256))
        >>> block(keras.ops.ones((2, 7, 64))).shape
        (2, 7, 64)
    """

    def __init__(self, attention, feed_forward, dropout=0.1, layer_norm_epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        self.attention = attention
        self.feed_forward = feed_forward
        self.layer_norm_epsilon = layer_norm_epsilon
        dtype = self.dtype_policy
        self.attention_dropout = keras.layers.Dropout(
            dropout, dtype=dtype, name="attention_dropout"
        )
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name="attention_norm"
        )
        self.output_dropout = keras.layers.Dropout(dropout, dtype=dtype, name="output_dropout")
        self.output_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name="output_norm"
        )

    def build(self, hidden_shape):
        """Build the sublayers for inputs of shape `[b, q, w]`."""
        for layer in (self.attention, self.attention_norm, self.feed_forward, self.output_norm):
            if not layer.built:  # a deserialised sublayer comes built
                layer.build(hidden_shape)

    def call(self, hidden, memory=None, attention_mask=None, training=None, **attention_inputs):
        """Run the block."""
        attended = self.attention(
            hidden,
            memory=memory,
            attention_mask=attention_mask,
            training=training,
            **attention_inputs,
        )
        attended = self.attention_dropout(attended, training=training)
        hidden = self.attention_norm(hidden + attended)
        expanded = self.output_dropout(self.feed_forward(hidden), training=training)
        return self.output_norm(hidden + expanded)

    def compute_output_shape(self, hidden_shape):
        """The shape of `hidden`."""
        return hidden_shape

    def get_config(self):
        """The constructor's arguments; the two sublayers with their own configurations."""
        return {
            **super().get_config(),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "feed_forward": keras.saving.serialize_keras_object(self.feed_forward),
            "dropout": self.output_dropout.rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }

    @classmethod
    def from_config(cls, config):
        """Rebuild the block and the two layers in it."""
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("attention", "feed_forward")
        }
        return cls(**{**config, **parts})
