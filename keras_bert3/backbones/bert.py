"""BERT: Pre-training of Deep Bidirectional Transformers (Devlin et al. 2018)."""

import keras

from keras_bert3.backbones.backbone import Backbone
from keras_bert3.layers.embeddings import BertEmbeddings
from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.masks import attention_mask
from keras_bert3.layers.pooler import Pooler
from keras_bert3.layers.self_attention import SelfAttention
from keras_bert3.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert3")
class BertBackbone(Backbone):
    """A stack of Transformer blocks that look in both directions.

        h_0 = BertEmbeddings(tokens, segments)
        h_i = TransformerBlock_i(h_{i-1}),  i = 1 ... L
        sequence_output = h_L,  pooled_output = tanh(W h_L[CLS] + b)

    Defaults are those of google-research/bert; sizes by name are in `backbones/sizes.py`.

    Args:
        vocabulary_size: number of token ids.
        num_layers: L.
        num_heads: attention heads A.
        hidden_dim: width H.
        intermediate_dim: width inside the feed-forward networks (4 H in the paper).
        dropout: rate on embeddings and sublayer outputs (0.1).
        attention_dropout: rate on attention probabilities; as `dropout` when None.
        max_sequence_length: size of the position table (512).
        num_segments: size of the segment table (2).
        activation: `gelu_tanh` (google-research/bert) or `gelu_erf` (Hugging Face).
        layer_norm_epsilon: 1e-12.
        initializer_range: standard deviation of the truncated normal that kernels and tables
            start from (0.02).

    Call arguments and outputs: see `Backbone`.

    Example:
        >>> backbone = BertBackbone(**sizes.BERT["tiny"])
        >>> backbone({"token_ids": ids, "padding_mask": ids != 0})["pooled_output"].shape
        (8, 128)
    """

    has_pooler = True

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=512,
        num_segments=2,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-12,
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
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range

        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            embeddings_initializer=self.initializer(),
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.blocks = [self._block(f"block_{i}") for i in range(num_layers)]
        self.pooler = Pooler(self.initializer(), dtype=self.dtype_policy, name="pooler")
        self.build()

    def initializer(self):
        """The truncated normal every kernel and table of BERT starts from, heads included."""
        return keras.initializers.TruncatedNormal(stddev=self.initializer_range)

    def _block(self, name):
        dtype = self.dtype_policy
        return TransformerBlock(
            SelfAttention(
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
        hidden_shape = (None, None, self.hidden_dim)
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build(hidden_shape)
        self.pooler.build(hidden_shape)

    def call(self, inputs, layer_outputs=False, training=None):
        """Run the network on a batch."""
        token_ids, segment_ids, padding_mask = self.check_inputs(inputs)
        mask = self.visible(token_ids, padding_mask)
        hidden = self.embeddings(token_ids, segment_ids, training=training)
        every_layer = [hidden]
        for block in self.blocks:
            hidden = block(hidden, attention_mask=mask, training=training)
            every_layer.append(hidden)
        outputs = {"sequence_output": hidden, "pooled_output": self.pooler(hidden)}
        if layer_outputs:
            outputs["layer_outputs"] = every_layer
        return outputs

    def visible(self, token_ids, padding_mask):
        """Which keys each query sees, as `TransformerBlock` takes it: here all real tokens."""
        return attention_mask(padding_mask)

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
            "max_sequence_length",
            "num_segments",
            "activation",
            "layer_norm_epsilon",
            "initializer_range",
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
