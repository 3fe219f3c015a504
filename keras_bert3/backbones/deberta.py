"""DeBERTa: Decoding-enhanced BERT with Disentangled Attention (He et al. 2021), v1, v2 and v3."""

import keras
from keras import ops

from keras_bert3.backbones.backbone import Backbone, check_range
from keras_bert3.layers.context_pooler import ContextPooler
from keras_bert3.layers.deberta_embeddings import (
    DebertaEmbeddings,
    RelativeEmbeddings,
)
from keras_bert3.layers.disentangled_self_attention import (
    TERMS,
    DisentangledSelfAttention,
)
from keras_bert3.layers.enhanced_mask_decoder import EnhancedMaskDecoder
from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.masks import attention_mask
from keras_bert3.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert3")
class DebertaBackbone(Backbone):
    """A stack of Transformer blocks that know content and distances apart (DeBERTa v1).

        h_0 = DebertaEmbeddings(tokens)
        h_i = TransformerBlock_i(h_{i-1}, P),  i = 1 ... L
        sequence_output = h_L

    P is one table of relative positions for all blocks. Absolute positions are part of the masked
    language model alone; see `mask_decoder`. Sequences may be longer than `max_sequence_length`,
    beyond which distances all look alike, except for that decoder.

    Defaults are those of microsoft/DeBERTa; sizes by name are in `backbones/sizes.py`.

    Args:
        vocabulary_size: number of token ids.
        num_layers: L.
        num_heads: attention heads A.
        hidden_dim: width H.
        intermediate_dim: width inside the feed-forward networks.
        dropout: rate on embeddings, relative embeddings and sublayer outputs (0.1).
        attention_dropout: rate on attention probabilities; as `dropout` when None.
        max_sequence_length: size of the mask decoder's position table (512).
        span: distances on either side that have rows of P; as `max_sequence_length` when None.
        num_segments: 0 for no segments, as released; `segment_ids` are then ignored.
        terms: of the attention, see `DisentangledSelfAttention`.
        p2c_distance: see `DisentangledSelfAttention`.
        activation: `gelu_erf`.
        layer_norm_epsilon: 1e-7.
        initializer_range: standard deviation of the normal distribution that kernels and tables
            start from (0.02).

    Call arguments and outputs: see `Backbone`; the inputs may hold `token_vectors` too, see
    `DebertaEmbeddings`. There is no pooler; a classifier brings `ContextPooler`.

    Example:
        >>> backbone = DebertaBackbone(1000, 2, 4, 64, 256)
        >>> backbone({"token_ids": ids, "padding_mask": ids != 0})["sequence_output"].shape
        (8, 128, 64)
    """

    config_names = (
        "vocabulary_size",
        "num_layers",
        "num_heads",
        "hidden_dim",
        "intermediate_dim",
        "dropout",
        "attention_dropout",
        "max_sequence_length",
        "span",
        "num_segments",
        "terms",
        "p2c_distance",
        "activation",
        "layer_norm_epsilon",
        "initializer_range",
    )
    relative_norm = False

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
        span=None,
        num_segments=0,
        terms=TERMS,
        p2c_distance="query_minus_key",
        activation="gelu_erf",
        layer_norm_epsilon=1e-7,
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
        self.span = max_sequence_length if span is None else span
        self.num_segments = num_segments
        self.terms = list(terms)
        self.p2c_distance = p2c_distance
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.make_layers()
        self.build()

    def make_layers(self):
        """Create the parts: embeddings, relative embeddings, blocks."""
        shared = {"embeddings_initializer": self.initializer(), "dtype": self.dtype_policy}
        self.embeddings = DebertaEmbeddings(
            self.vocabulary_size,
            self.hidden_dim,
            num_segments=self.num_segments,
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            name="embeddings",
            **shared,
        )
        self.relative_embeddings = RelativeEmbeddings(
            2 * self.span,
            self.hidden_dim,
            layer_norm_epsilon=self.layer_norm_epsilon if self.relative_norm else None,
            name="relative_embeddings",
            **shared,
        )
        self.relative_embeddings.trainable = bool(self.terms)  # else no gradient reaches them
        self.blocks = [self._block(f"block_{i}") for i in range(self.num_layers)]

    def initializer(self):
        """The normal distribution every kernel and table of DeBERTa starts from, heads included."""
        return keras.initializers.RandomNormal(stddev=self.initializer_range)

    def attention(self, **arguments):
        """Create the attention of one block."""
        return DisentangledSelfAttention(self.num_heads, span=self.span, **arguments)

    def _block(self, name):
        shared = {"kernel_initializer": self.initializer(), "dtype": self.dtype_policy}
        return TransformerBlock(
            self.attention(
                terms=self.terms,
                p2c_distance=self.p2c_distance,
                dropout=self.attention_dropout,
                position_dropout=self.dropout,
                name="attention",
                **shared,
            ),
            FeedForward(
                self.intermediate_dim, activation=self.activation, name="feed_forward", **shared
            ),
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, inputs_shape=None):
        """Create every weight; their shapes follow from the constructor's arguments alone."""
        self.embeddings.build((None, None))
        self.relative_embeddings.build()
        for block in self.blocks:
            block.build((None, None, self.hidden_dim))

    def call(self, inputs, layer_outputs=False, training=None):
        """Run the network on a batch."""
        every_layer, _ = self._first_blocks(inputs, self.num_layers, training)
        outputs = {"sequence_output": every_layer[-1]}
        if layer_outputs:
            outputs["layer_outputs"] = every_layer
        return outputs

    def make_pooler(self):
        """Create the built `ContextPooler` that a classifier reads."""
        pooler = ContextPooler(
            kernel_initializer=self.initializer(), dtype=self.dtype_policy, name="pooler"
        )
        pooler.build((None, None, self.hidden_dim))
        return pooler

    def pool(self, outputs, inputs, pooler=None, training=None):
        """What `ContextPooler` makes of the first token."""
        assert pooler is not None, "made by make_pooler"
        return pooler(outputs["sequence_output"], training=training)

    def masked_lm_features(self, decoder, inputs, positions=None, training=None):
        """Run all blocks but the last, then ask the last one by `decoder`.

        Args:
            decoder: an `EnhancedMaskDecoder`, see `mask_decoder`.
            inputs: as of a call.
            positions: integers `[b, p]`, those to predict; all when None.
            training: whether dropout is on.

        Returns:
            What a masked-LM head reads, `[b, p, w]`.
        """
        every_layer, shared = self._first_blocks(inputs, self.num_layers - 1, training)
        hidden, mask = every_layer[-1], shared["attention_mask"]
        if positions is not None and mask.shape[2] != 1:
            rows = ops.cast(positions, "int32")[:, None, :, None]
            mask = ops.take_along_axis(mask, rows, axis=2)

        def ask(queries, at):
            given = {**shared, "attention_mask": mask}
            return self.blocks[-1](queries, memory=hidden, query_positions=at, **given)

        return decoder(hidden, ask=ask, positions=positions)

    def _first_blocks(self, inputs, count, training):
        """Run the first `count` blocks.

        Returns:
            The embeddings and each block's output, and what every block takes beside them.
        """
        token_ids, segment_ids, padding_mask = self.check_inputs(inputs)
        mask = attention_mask(padding_mask)
        is_real = ops.any(mask, axis=(1, 2))
        vectors = inputs.get("token_vectors")
        hidden = self.embeddings(token_ids, segment_ids, is_real, vectors, training=training)
        shared = {
            "attention_mask": mask,
            "relative_embeddings": self.relative_embeddings.rows(),
            "training": training,
        }
        every_layer = [hidden]
        for i in range(count):
            hidden = self.blocks[i](hidden, **shared)
            hidden = self.after_block(i, hidden, every_layer[0], is_real, training)
            every_layer.append(hidden)
        return every_layer, shared

    def after_block(self, i, hidden, embeddings, is_real, training):
        """Change the output of block `i`; DeBERTa v1 leaves it as it is."""
        return hidden

    def check_inputs(self, inputs):
        """As the base class does, but for sequences of any length and segments where there are any.

        Without a table of segments `segment_ids` are ignored: text prepared for BERT serves.
        """
        if not isinstance(inputs, dict) or not {"token_ids", "padding_mask"} <= set(inputs):
            received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                "Expected `inputs` to be a dict with the keys 'token_ids' and 'padding_mask'. "
                f"Received: {received}"
            )
        token_ids, segment_ids = inputs["token_ids"], inputs.get("segment_ids")
        if len(token_ids.shape) != 2:
            raise ValueError(
                "Expected `token_ids` of shape (batch, length). "
                f"Received: shape={tuple(token_ids.shape)}"
            )
        check_range("token_ids", token_ids, self.vocabulary_size)
        if segment_ids is None or not self.num_segments:
            segment_ids = ops.zeros_like(token_ids)
        else:
            check_range("segment_ids", segment_ids, self.num_segments)
        return token_ids, segment_ids, inputs["padding_mask"]

    def mask_decoder(self, **arguments):
        """Create the built `EnhancedMaskDecoder` that belongs to this backbone.

        Raises:
            ValueError: with fewer than two blocks.
        """
        if self.num_layers < 2:
            raise ValueError(
                "Expected at least two blocks: the mask decoder is the last, on the output of the "
                f"one before. Received: num_layers={self.num_layers}"
            )
        decoder = EnhancedMaskDecoder(
            self.max_sequence_length,
            embeddings_initializer=self.initializer(),
            dtype=self.dtype_policy,
            name="enhanced_mask_decoder",
            **arguments,
        )
        decoder.build((None, None, self.hidden_dim))
        return decoder

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in self.config_names},
        }
