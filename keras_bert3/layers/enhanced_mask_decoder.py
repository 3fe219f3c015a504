"""DeBERTa's decoder of masks: absolute positions, just before the answer."""

import keras
from keras import ops

from keras_bert3.layers.initializers import fresh
from keras_bert3.layers.masked_lm_head import gather_positions

FIRST_QUERIES = ("position_and_hidden", "position", "hidden")


@keras.saving.register_keras_serializable(package="keras_bert3")
class EnhancedMaskDecoder(keras.layers.Layer):
    """Ask the last block several times, with queries that know where they stand.

        I_0 = P + H;  I_n = Block_L(queries and residual = I_{n-1}, keys and values = H)

    He et al. 2021, section 3.2 and figure 2 (b). H is the output of block L - 1, P a table of
    absolute positions. The steps share the weights of block L, which has no other use in
    pretraining: its ordinary pass is skipped. Only positions to predict ask, which changes nothing
    for them. Without positions (`first_query="hidden"`) and in one step this is BERT's decoder.

    Args:
        max_sequence_length: rows of P (512).
        num_steps: n (2).
        first_query: I_0: "position_and_hidden" (the released code), "position" (what the paper
            says) or "hidden".
        embeddings_initializer: for P.

    Call arguments:
        hidden: H, `[b, k, w]`.
        ask: a function of queries `[b, p, w]` and their positions (integers `[b, p]`, or None for
            all in order) that returns what block L makes of them, `[b, p, w]`.
        positions: integers `[b, p]`, those to predict; all when None.

    Output shape:
        `[b, p, w]`.

    Raises:
        ValueError: if the sequence is longer than P, or the steps or queries are none of these.
    """

    def __init__(
        self,
        max_sequence_length=512,
        num_steps=2,
        first_query="position_and_hidden",
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_steps < 1 or first_query not in FIRST_QUERIES:
            raise ValueError(
                f"Expected num_steps >= 1 and first_query among {FIRST_QUERIES}. "
                f"Received: num_steps={num_steps}, first_query={first_query!r}"
            )
        self.max_sequence_length = max_sequence_length
        self.num_steps = num_steps
        self.first_query = first_query
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, hidden_shape):
        """Create P."""
        if self.first_query != "hidden":
            self.embeddings = self.add_weight(
                shape=(self.max_sequence_length, hidden_shape[-1]),
                initializer=fresh(self.embeddings_initializer),
                name="embeddings",
            )

    def call(self, hidden, ask, positions=None):
        """Decode the positions to predict."""
        queries = self._first_queries(hidden, positions)
        for _ in range(self.num_steps):
            queries = ask(queries, positions)
        return queries

    def _first_queries(self, hidden, positions):
        """I_0, `[b, p, w]`."""
        there = hidden if positions is None else gather_positions(hidden, positions)
        if self.first_query == "hidden":
            return there
        length = hidden.shape[1]
        if isinstance(length, int) and length > self.max_sequence_length:
            raise ValueError(
                f"Expected a sequence of at most {self.max_sequence_length} tokens, the size of "
                f"the position table. Received: sequence length {length}"
            )
        table = ops.cast(ops.convert_to_tensor(self.embeddings), there.dtype)
        vectors = table[None, : ops.shape(hidden)[1]]
        if positions is not None:
            # A product, since a look-up's gradient is not one dense table on every backend.
            chosen = ops.one_hot(
                ops.cast(positions, "int32"), ops.shape(hidden)[1], dtype=there.dtype
            )
            vectors = ops.einsum("bpq,qw->bpw", chosen, vectors[0])
        if self.first_query == "position":
            return ops.broadcast_to(vectors, ops.shape(there))
        return vectors + there

    def compute_output_shape(self, hidden_shape):
        """`[b, k, w]`: all positions."""
        return hidden_shape

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
            "num_steps": self.num_steps,
            "first_query": self.first_query,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
