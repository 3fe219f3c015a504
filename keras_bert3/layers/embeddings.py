"""Tables of vectors: tokens, segments and positions."""

import keras
import numpy as np
from keras import ops

from keras_bert3.layers.initializers import fresh


def with_dense_gradient(table):
    """Return a table to look ids up in, whose gradient will be one dense table.

    A reshape, which costs nothing, stands between look-up and weight: TensorFlow cannot hand a
    gradient of single rows through it.
    """
    table = ops.convert_to_tensor(table)
    return ops.reshape(table, table.shape)


@keras.saving.register_keras_serializable(package="keras_bert3")
class Embedding(keras.layers.Layer):
    """A table of vectors looked up by id.

    Differs from `keras.layers.Embedding` in its gradient: on TensorFlow a plain look-up hands the
    optimiser the repeated ids of a batch one by one, so that Adam's second moment becomes the sum
    of squares instead of the square of the sum, and gradient norms are wrong. Here the
    gradient is one dense table on every backend.

    Args:
        input_dim: number of ids.
        output_dim: width of a vector.
        embeddings_initializer: for the table.

    Call arguments:
        ids: integers `[b, q]` in [0, input_dim), of any integer or float dtype. Ids outside are
            an error on PyTorch and (on a CPU) TensorFlow, and NaN on JAX; tasks refuse them first.

    Output shape:
        `[b, q, output_dim]`.
    """

    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.autocast = False  # ids must not become floats

    def build(self, ids_shape=None):
        """Create the table; devices that share its rows may need some to spare, which are zero."""
        mesh = keras.distribution.distribution()
        rows = self.input_dim
        if hasattr(mesh, "rows_of"):
            rows = mesh.rows_of(f"{self.path}/embeddings", rows)
        self.embeddings = self.add_weight(
            shape=(rows, self.output_dim),
            initializer=fresh(self.embeddings_initializer) if rows == self.input_dim else self._few,
            name="embeddings",
        )
        if rows > self.input_dim:
            self.embeddings.used_rows = self.input_dim

    def _few(self, shape, dtype=None):
        """The first values of a table with rows to spare: those it would have without."""
        values = fresh(self.embeddings_initializer)((self.input_dim, shape[1]), dtype)
        return ops.pad(values, ((0, shape[0] - self.input_dim), (0, 0)))

    def save_own_variables(self, store):
        """Write the table without rows to spare."""
        if self.embeddings.shape[0] == self.input_dim:
            return super().save_own_variables(store)
        store["0"] = ops.convert_to_numpy(self.embeddings)[: self.input_dim]

    def load_own_variables(self, store):
        """Read the table that another with rows to spare, or without, has written."""
        spare = self.embeddings.shape[0] - self.input_dim
        if not spare:
            return super().load_own_variables(store)
        self.embeddings.assign(np.pad(np.asarray(store["0"]), ((0, spare), (0, 0))))

    def call(self, ids):
        """Look `ids` up."""
        table = with_dense_gradient(self.embeddings)
        return ops.cast(ops.take(table, ops.cast(ids, "int32"), axis=0), self.compute_dtype)

    def compute_output_shape(self, ids_shape):
        """`[b, q, output_dim]`."""
        return (*ids_shape, self.output_dim)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class PositionEmbedding(keras.layers.Layer):
    """A learned vector for each absolute position (BERT, figure 2; GPT-1, equation 2).

    Args:
        max_sequence_length: number of positions.
        embeddings_initializer: for the table.

    Call arguments:
        hidden: `[b, q, w]`; only its length is read.

    Output shape:
        `[1, q, w]`, which broadcasts over the batch.

    Raises:
        ValueError: if the sequence is longer than the table.
    """

    def __init__(self, max_sequence_length, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.max_sequence_length = max_sequence_length
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, hidden_shape):
        """Create the table for inputs of width `hidden_shape[-1]`."""
        self.embeddings = self.add_weight(
            shape=(self.max_sequence_length, hidden_shape[-1]),
            initializer=fresh(self.embeddings_initializer),
            name="embeddings",
        )

    def call(self, hidden):
        """Return the vectors of the first q positions."""
        length = hidden.shape[1]
        if isinstance(length, int) and length > self.max_sequence_length:
            raise ValueError(
                f"Expected a sequence of at most {self.max_sequence_length} tokens, the size of "
                f"the position table. Received: sequence length {length}"
            )
        table = ops.convert_to_tensor(self.embeddings)
        return ops.expand_dims(table[: ops.shape(hidden)[1]], 0)

    def compute_output_shape(self, hidden_shape):
        """`[1, q, w]`."""
        return (1, *hidden_shape[1:])

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class BertEmbeddings(keras.layers.Layer):
    """The input of BERT: Dropout(LayerNorm(token + segment + position)).

    Devlin et al. 2018, figure 2; normalisation and dropout as in google-research/bert.

    Args:
        vocabulary_size: number of token ids.
        hidden_dim: width w.
        max_sequence_length: number of positions (512).
        num_segments: number of segment ids (2).
        dropout: rate on the normalised sum (0.1).
        layer_norm_epsilon: 1e-12.
        embeddings_initializer: for the three tables.

    Call arguments:
        token_ids: integers `[b, q]`.
        segment_ids: integers `[b, q]`.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_sequence_length=512,
        num_segments=2,
        dropout=0.1,
        layer_norm_epsilon=1e-12,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        self.hidden_dim = hidden_dim
        self.layer_norm_epsilon = layer_norm_epsilon
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        dtype, initializer = self.dtype_policy, self.embeddings_initializer
        self.token = Embedding(vocabulary_size, hidden_dim, initializer, dtype=dtype, name="token")
        self.segment = Embedding(num_segments, hidden_dim, initializer, dtype=dtype, name="segment")
        self.position = PositionEmbedding(
            max_sequence_length, initializer, dtype=dtype, name="position"
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name="norm"
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype, name="dropout")

    def build(self, token_ids_shape):
        """Create the tables and the normalisation."""
        hidden_shape = (*token_ids_shape, self.hidden_dim)
        self.token.build(token_ids_shape)
        self.segment.build(token_ids_shape)
        self.position.build(hidden_shape)
        self.norm.build(hidden_shape)

    def call(self, token_ids, segment_ids, training=None):
        """Embed a batch."""
        tokens, segments = self.token(token_ids), self.segment(segment_ids)
        summed = tokens + segments + self.position(tokens)
        return self.dropout(self.norm(summed), training=training)

    def compute_output_shape(self, token_ids_shape):
        """`[b, q, w]`."""
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.token.input_dim,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.position.max_sequence_length,
            "num_segments": self.segment.input_dim,
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
