"""From a hidden vector to a score for every vocabulary entry."""

import keras
from keras import ops

from keras_bert3.layers import activations
from keras_bert3.layers.initializers import fresh


def gather_positions(hidden, positions):
    """Pick the vectors at `positions`: `[b, q, w]`, integers `[b, p]` -> `[b, p, w]`."""
    indices = ops.cast(positions, "int32")[:, :, None]
    return ops.take_along_axis(hidden, indices, axis=1)


@keras.saving.register_keras_serializable(package="keras_bert3")
class MaskedLMHead(keras.layers.Layer):
    """Predict the tokens behind masks, with the input embeddings as output weights.

        logits = LayerNorm(act(h W + b)) E^T + c

    E is the token table of the backbone (Devlin et al. 2018, section 3.1, task 1; the
    transformation before E^T is google-research/bert's).

    Args:
        vocabulary_size: number of rows of E.
        activation: the backbone's.
        layer_norm_epsilon: 1e-12 in BERT, 1e-7 in DeBERTa.
        kernel_initializer: for W; biases start at 0.

    Call arguments:
        hidden: `[b, p, w]`, the positions to predict.
        embeddings: E, `[v, e]`; e is w except where a backbone embeds in another width. Rows past
            the vocabulary, which a table cut by devices may have, get no logit.

    Output shape:
        logits `[b, p, v]`, in the compute dtype; take the softmax in float32.
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_dim,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-12,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dense = keras.layers.Dense(
            embedding_dim,
            activation=activations.get(activation),
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, hidden_shape):
        """Create the transformation and the bias over the vocabulary."""
        self.dense.build(hidden_shape)
        self.norm.build((*hidden_shape[:-1], self.embedding_dim))
        self.bias = self.add_weight(shape=(self.vocabulary_size,), initializer="zeros", name="bias")

    def call(self, hidden, embeddings):
        """Score every vocabulary entry at every position."""
        features = self.norm(self.dense(hidden))
        logits = ops.einsum("bpw,vw->bpv", features, embeddings)
        if logits.shape[-1] > self.vocabulary_size:
            logits = logits[..., : self.vocabulary_size]
        return logits + self.bias

    def compute_output_shape(self, hidden_shape):
        """`[b, p, v]`."""
        return (*hidden_shape[:-1], self.vocabulary_size)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
