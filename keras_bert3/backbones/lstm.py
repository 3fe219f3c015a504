"""The recurrent network that GPT-1's ablation puts in the Transformer's place."""

import keras
from keras import ops

from keras_bert3.backbones.backbone import Backbone
from keras_bert3.layers.embeddings import Embedding, with_dense_gradient
from keras_bert3.layers.last_token import last_token
from keras_bert3.training.fine_tuning import FineTuning
from keras_bert3.training.optimizers import GPTAdam


@keras.saving.register_keras_serializable(package="keras_bert3")
class LSTMBackbone(Backbone):
    """One layer of long short-term memory that reads from left to right.

        x_t = W_e[token_t]
        h_t, c_t = LSTM(x_t, h_{t-1}, c_{t-1})
        sequence_output = h

    Radford et al. 2018, section 5: "a single layer 2048 unit LSTM using the same framework". It
    takes a `GPTBackbone`'s place in `CausalLM` (training and scoring, not `generate`) and in
    fine-tuning. Padding leaves the state as it is, wherever it stands.

    Args:
        vocabulary_size: number of token ids.
        hidden_dim: units (2048); the token table, which is the output matrix too, is as wide.
        dropout: rate on the embeddings and on the output (0.1).
        max_sequence_length: tokens of a row at most (512).
        initializer_range: standard deviation of the token table (0.02).

    Call arguments and outputs: see `GPTBackbone`.

    Example:
        >>> LSTMBackbone(40478)({"token_ids": ids, "padding_mask": mask})["sequence_output"].shape
        (8, 512, 2048)
    """

    num_segments = 1
    num_layers = 1
    fine_tuning = FineTuning(GPTAdam, 6.25e-5, 0.002)

    def __init__(
        self,
        vocabulary_size,
        hidden_dim=2048,
        dropout=0.1,
        max_sequence_length=512,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.initializer_range = initializer_range
        dtype = self.dtype_policy
        self.token = Embedding(
            vocabulary_size, hidden_dim, self.initializer(), dtype=dtype, name="token"
        )
        self.lstm = keras.layers.LSTM(hidden_dim, return_sequences=True, dtype=dtype, name="lstm")
        self.input_dropout, self.output_dropout = (
            keras.layers.Dropout(dropout, dtype=dtype, name=name)
            for name in ("input_dropout", "output_dropout")
        )
        self.build()

    def initializer(self):
        """The normal distribution that the table and heads start from."""
        return keras.initializers.RandomNormal(stddev=self.initializer_range)

    @property
    def token_embeddings(self):
        """The token table `[v, w]`."""
        return self.token.embeddings

    def build(self, inputs_shape=None):
        """Create every weight."""
        self.token.build()
        self.lstm.build((None, None, self.hidden_dim))

    def call(self, inputs, layer_outputs=False, token_table=False, training=None):
        """Run the network on a batch."""
        token_ids, _, padding_mask = self.check_inputs(inputs)
        table = ops.cast(with_dense_gradient(self.token_embeddings), self.compute_dtype)
        embedded = ops.take(table, ops.cast(token_ids, "int32"), axis=0)
        embedded = self.input_dropout(embedded, training=training)
        real = ops.not_equal(ops.cast(padding_mask, "int32"), 0)
        hidden = self.lstm(embedded, mask=real, training=training)
        hidden = self.output_dropout(hidden, training=training)
        outputs = {"sequence_output": hidden}
        if layer_outputs:
            outputs["layer_outputs"] = [embedded, hidden]
        if token_table:
            outputs["token_table"] = table
        return outputs

    def compute_output_spec(self, inputs, layer_outputs=False, token_table=False, training=None):
        """Declare the outputs for symbolic inputs."""
        outputs = super().compute_output_spec(inputs, layer_outputs, training)
        if token_table:
            outputs["token_table"] = self._tensor((self.vocabulary_size, self.hidden_dim))
        return outputs

    def pool(self, outputs, inputs, pooler=None, training=None):
        """The vector of the last real token; see `last_token`."""
        return last_token(outputs["sequence_output"], inputs["padding_mask"])

    def get_config(self):
        """The constructor's arguments."""
        names = (
            "vocabulary_size",
            "hidden_dim",
            "dropout",
            "max_sequence_length",
            "initializer_range",
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
