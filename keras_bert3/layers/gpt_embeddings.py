"""GPT-1's input: token plus position, with dropout on the tables themselves."""

import keras
from keras import ops

from keras_bert3.layers.embeddings import Embedding, with_dense_gradient

DROPOUT_PLACES = ("matrix", "sum")


def count_positions(padding_mask):
    """Number the real tokens of each row from 0, wherever its padding is.

    Args:
        padding_mask: `[b, q]`, nonzero for real tokens.

    Returns:
        int32 `[b, q]`; padding has the number of the real token before it, or 0.
    """
    real = ops.cast(ops.not_equal(padding_mask, 0), "int32")
    return ops.maximum(ops.cumsum(real, axis=1) - 1, 0)


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTEmbeddings(keras.layers.Layer):
    """The input of GPT-1: W_e[tokens] + W_p[positions], not normalised.

    Radford et al. 2018, equation 2. The paper's "embedding dropout" of 0.1 has two readings:

    - `matrix`: entries of both tables are dropped once a step, so that a word loses the same
      features wherever it occurs, and in the output matrix too, which is the same table
      (openai/finetune-transformer-lm train.py);
    - `sum`: entries of the summed vectors are dropped (Hugging Face transformers).

    Args:
        vocabulary_size: number of token ids.
        hidden_dim: width w.
        max_sequence_length: number of positions (512).
        dropout: rate (0.1).
        dropout_place: `matrix` or `sum`.
        embeddings_initializer: for both tables.

    Call arguments:
        token_ids: integers `[b, q]`.
        position_ids: integers `[b, q]` or `[1, q]`.
        tables: what `tables()` returned, where the step needs it elsewhere too.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.

    Raises:
        ValueError: for another `dropout_place`.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_sequence_length=512,
        dropout=0.1,
        dropout_place="matrix",
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if dropout_place not in DROPOUT_PLACES:
            raise ValueError(
                f"Expected embedding dropout on one of {', '.join(DROPOUT_PLACES)}. "
                f"Received: {dropout_place!r}"
            )
        self.autocast = False
        self.hidden_dim = hidden_dim
        self.dropout_place = dropout_place
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        dtype, initializer = self.dtype_policy, self.embeddings_initializer
        self.token = Embedding(vocabulary_size, hidden_dim, initializer, dtype=dtype, name="token")
        self.position = Embedding(
            max_sequence_length, hidden_dim, initializer, dtype=dtype, name="position"
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype, name="dropout")

    def build(self, token_ids_shape):
        """Create both tables."""
        self.token.build()
        self.position.build()

    def tables(self, training=None):
        """Return the token table `[v, w]` and the position table as this step shall see them."""
        tables = (self._table(layer) for layer in (self.token, self.position))
        if self.dropout_place == "sum":
            return tuple(tables)
        return tuple(self.dropout(table, training=training) for table in tables)

    def _table(self, layer):
        """A table in the compute dtype."""
        table = with_dense_gradient(layer.embeddings)
        if table.shape[0] > layer.input_dim:  # rows to spare
            table = table[: layer.input_dim]
        return ops.cast(table, self.compute_dtype)

    def call(self, token_ids, position_ids, tables=None, training=None):
        """Embed a batch."""
        token, position = self.tables(training) if tables is None else tables
        tokens = ops.take(token, ops.cast(token_ids, "int32"), axis=0)
        summed = tokens + ops.take(position, ops.cast(position_ids, "int32"), axis=0)
        return self.dropout(summed, training=training) if self.dropout_place == "sum" else summed

    def compute_output_shape(self, token_ids_shape):
        """`[b, q, w]`."""
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.token.input_dim,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.position.input_dim,
            "dropout": self.dropout.rate,
            "dropout_place": self.dropout_place,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
