"""GPT-1: Improving Language Understanding by Generative Pre-Training (Radford et al. 2018)."""

import keras
from keras import ops

from keras_bert3.backbones.backbone import Backbone
from keras_bert3.layers.cached_self_attention import CachedSelfAttention, CachedTransformerBlock
from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.gpt_embeddings import GPTEmbeddings, count_positions
from keras_bert3.layers.last_token import last_token
from keras_bert3.layers.masks import attention_mask, causal_mask
from keras_bert3.training.fine_tuning import FineTuning
from keras_bert3.training.optimizers import GPTAdam


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTBackbone(Backbone):
    """A stack of Transformer blocks that look to the left.

        h_0 = W_e[tokens] + W_p[positions]
        h_i = TransformerBlock_i(h_{i-1}),  i = 1 ... n
        sequence_output = h_n

    Section 3.1, equation 2. The blocks are BERT's, normalised after each sublayer, with a causal
    mask; neither embeddings nor the last output are normalised again. Positions count real tokens,
    so a row gives the same vectors with its padding on the left, on the right or absent. Defaults
    are those of openai/finetune-transformer-lm; sizes by name are in `backbones/sizes.py`.

    Args:
        vocabulary_size: number of token ids, those of special tokens included.
        num_layers: n (12).
        num_heads: attention heads (12).
        hidden_dim: width (768).
        intermediate_dim: width inside the feed-forward networks (3072).
        dropout: rate on embeddings and sublayer outputs (0.1).
        attention_dropout: rate on attention probabilities; as `dropout` when None.
        embedding_dropout: `matrix` (as released) or `sum` (Hugging Face), see `GPTEmbeddings`.
        max_sequence_length: size of the position table (512).
        activation: `gelu_tanh`.
        layer_norm_epsilon: 1e-5.
        initializer_range: standard deviation of the normal distribution, not truncated, that
            kernels and tables start from (0.02).

    Call arguments and outputs: see `Backbone`, with `padding_mask` `[b, q]`. With
    `token_table=True` there is also `token_table` `[v, w]`, the token table as this step saw it
    (`embedding_dropout="matrix"` drops entries of it): the output matrix of the language model.

    Example:
        >>> backbone = GPTBackbone(**sizes.GPT["base"])
        >>> backbone({"token_ids": ids, "padding_mask": mask})["sequence_output"].shape
        (8, 512, 768)
    """

    num_segments = 1
    fine_tuning = FineTuning(GPTAdam, 6.25e-5, 0.002)

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        embedding_dropout="matrix",
        max_sequence_length=512,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.attention_dropout = dropout if attention_dropout is None else attention_dropout
        self.embedding_dropout = embedding_dropout
        self.max_sequence_length = max_sequence_length
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range

        self.embeddings = GPTEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            dropout=dropout,
            dropout_place=embedding_dropout,
            embeddings_initializer=self.initializer(),
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.blocks = [self._block(f"block_{i}") for i in range(num_layers)]
        self.build()

    def initializer(self):
        """The normal distribution every kernel and table of GPT-1 starts from, heads included."""
        return keras.initializers.RandomNormal(stddev=self.initializer_range)

    def _block(self, name):
        dtype = self.dtype_policy
        return CachedTransformerBlock(
            CachedSelfAttention(
                self.num_heads,
                dropout=self.attention_dropout,
                kernel_initializer=self.initializer(),
                dtype=dtype,
                name="attention",
            ),
            FeedForward(
                self.intermediate_dim,
                activation=self.activation,
                kernel_initializer=self.initializer(),
                dtype=dtype,
                name="feed_forward",
            ),
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            dtype=dtype,
            name=name,
        )

    def build(self, inputs_shape=None):
        """Create every weight; their shapes follow from the constructor's arguments alone."""
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build((None, None, self.hidden_dim))

    def call(self, inputs, layer_outputs=False, token_table=False, training=None):
        """Run the network on a batch."""
        token_ids, _, padding_mask = self.check_inputs(inputs)
        tables = self.embeddings.tables(training=training)
        positions = count_positions(padding_mask)
        hidden = self.embeddings(token_ids, positions, tables=tables, training=training)
        causal = causal_mask(ops.shape(token_ids)[1])
        mask = ops.logical_and(causal, attention_mask(padding_mask))
        every_layer = [hidden]
        for block in self.blocks:
            hidden = block(hidden, attention_mask=mask, training=training)
            every_layer.append(hidden)
        outputs = {"sequence_output": hidden}
        if layer_outputs:
            outputs["layer_outputs"] = every_layer
        if token_table:
            outputs["token_table"] = tables[0]
        return outputs

    def pool(self, outputs, inputs, pooler=None, training=None):
        """The vector of the last real token, which is the classify token; see `last_token`."""
        return last_token(outputs["sequence_output"], inputs["padding_mask"])

    def check_inputs(self, inputs):
        """As the base class does; besides, the mask must tell which tokens are real."""
        token_ids, segment_ids, padding_mask = super().check_inputs(inputs)
        if len(padding_mask.shape) != 2:
            raise ValueError(
                "Expected `padding_mask` of shape (batch, length), from which positions are "
                f"counted. Received: shape={tuple(padding_mask.shape)}"
            )
        return token_ids, segment_ids, padding_mask

    def compute_output_spec(self, inputs, layer_outputs=False, token_table=False, training=None):
        """Declare the outputs for symbolic inputs."""
        outputs = super().compute_output_spec(inputs, layer_outputs, training)
        if token_table:
            outputs["token_table"] = self._tensor((self.vocabulary_size, self.hidden_dim))
        return outputs

    def get_config(self):
        """The constructor's arguments."""
        names = (
            "vocabulary_size",
            "num_layers",
            "num_heads",
            "hidden_dim",
            "intermediate_dim",
            "dropout",
            "attention_dropout",
            "embedding_dropout",
            "max_sequence_length",
            "activation",
            "layer_norm_epsilon",
            "initializer_range",
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
