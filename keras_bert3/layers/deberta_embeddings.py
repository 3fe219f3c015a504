"""What DeBERTa adds to token vectors: a mask instead of positions, relative ones, n-grams."""

import keras
from keras import ops

from keras_bert3.layers import activations
from keras_bert3.layers.embeddings import Embedding, with_dense_gradient
from keras_bert3.layers.initializers import fresh


@keras.saving.register_keras_serializable(package="keras_bert3")
class DebertaEmbeddings(keras.layers.Layer):
    """The input of DeBERTa: Dropout(LayerNorm(token [+ segment]) x mask).

    No position is added (He et al. 2021, section 3: positions enter the attention alone, and the
    mask decoder), and padding starts from zeros, as in microsoft/DeBERTa `bert.py`.

    Args:
        vocabulary_size: number of token ids.
        hidden_dim: width w.
        num_segments: number of segment ids; 0 for no segments, as in all released models.
        dropout: rate on the result (0.1).
        layer_norm_epsilon: 1e-7.
        embeddings_initializer: for the tables.

    Call arguments:
        token_ids: integers `[b, q]`.
        segment_ids: integers `[b, q]`; ignored where there are no segments.
        is_real: `[b, q]`, nonzero for tokens, zero for padding.
        token_vectors: `[b, q, w]` to add to those of the token table, or None; another table's
            part in replaced-token detection.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        num_segments=0,
        dropout=0.1,
        layer_norm_epsilon=1e-7,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        self.hidden_dim = hidden_dim
        self.num_segments = num_segments
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        dtype, initializer = self.dtype_policy, self.embeddings_initializer
        self.token = Embedding(vocabulary_size, hidden_dim, initializer, dtype=dtype, name="token")
        if num_segments:
            self.segment = Embedding(
                num_segments, hidden_dim, initializer, dtype=dtype, name="segment"
            )
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name="norm"
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype, name="dropout")

    def build(self, token_ids_shape):
        """Create the tables and the normalisation."""
        self.token.build(token_ids_shape)
        if self.num_segments:
            self.segment.build(token_ids_shape)
        self.norm.build((*token_ids_shape, self.hidden_dim))

    def call(self, token_ids, segment_ids, is_real, token_vectors=None, training=None):
        """Embed a batch."""
        summed = self.token(token_ids)
        if token_vectors is not None:
            summed += token_vectors
        if self.num_segments:
            summed += self.segment(segment_ids)
        normed = self.norm(summed)
        normed *= ops.cast(is_real, normed.dtype)[:, :, None]
        return self.dropout(normed, training=training)

    def compute_output_shape(self, token_ids_shape):
        """`[b, q, w]`."""
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.token.input_dim,
            "hidden_dim": self.hidden_dim,
            "num_segments": self.num_segments,
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.norm.epsilon,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class RelativeEmbeddings(keras.layers.Layer):
    """The table P of vectors for relative positions, which all layers share.

    Args:
        num_rows: 2 k, twice the span.
        width: w.
        layer_norm_epsilon: normalises the rows, as DeBERTa v2 and v3 do (1e-7); not where None.
        embeddings_initializer: for the table.
    """

    def __init__(
        self,
        num_rows,
        width,
        layer_norm_epsilon=None,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_rows = num_rows
        self.width = width
        self.layer_norm_epsilon = layer_norm_epsilon
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        if layer_norm_epsilon is not None:
            self.norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
            )

    def build(self, inputs_shape=None):
        """Create the table."""
        shape = (self.num_rows, self.width)
        self.embeddings = self.add_weight(
            shape=shape, initializer=fresh(self.embeddings_initializer), name="embeddings"
        )
        if self.layer_norm_epsilon is not None:
            self.norm.build(shape)

    def rows(self):
        """Return the rows, `[2 k, w]`, in the compute dtype."""
        rows = ops.cast(with_dense_gradient(self.embeddings), self.compute_dtype)
        return rows if self.layer_norm_epsilon is None else self.norm(rows)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_rows": self.num_rows,
            "width": self.width,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class NGramConvolution(keras.layers.Layer):
    """Local n-grams beside the first block (DeBERTa v2's nGiE).

        c = Dropout(Conv1D(x)), zero on padding;  out = LayerNorm(y + act(c)) x mask

    x are the embeddings and y the first block's output (microsoft/DeBERTa `ConvLayer`).

    Args:
        kernel_size: tokens a convolution sees (3 in v2-xlarge and v2-xxlarge).
        activation: `gelu_erf` in the released models.
        dropout: 0.1.
        layer_norm_epsilon: 1e-7.

    Call arguments:
        embeddings: x, `[b, q, w]`.
        hidden: y, `[b, q, w]`.
        is_real: `[b, q]`, zero for padding.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.
    """

    def __init__(
        self,
        kernel_size=3,
        activation="gelu_erf",
        dropout=0.1,
        layer_norm_epsilon=1e-7,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.kernel_size = kernel_size
        self.activation = activation
        self.activate = activations.get(activation)
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, hidden_shape):
        """Create the convolution and the normalisation."""
        self.convolution = keras.layers.Conv1D(
            hidden_shape[-1],
            self.kernel_size,
            padding="same",
            dtype=self.dtype_policy,
            name="convolution",
        )
        self.convolution.build(hidden_shape)
        self.norm.build(hidden_shape)

    def call(self, embeddings, hidden, is_real, training=None):
        """Add the n-grams of `embeddings` to `hidden`."""
        convolved = self.convolution(embeddings)
        real = ops.cast(is_real, convolved.dtype)[:, :, None]
        grams = self.activate(self.dropout(convolved * real, training=training))
        return self.norm(hidden + grams) * real

    def compute_output_shape(self, hidden_shape):
        """The shape of `hidden`."""
        return hidden_shape

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "activation": self.activation,
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.norm.epsilon,
        }
