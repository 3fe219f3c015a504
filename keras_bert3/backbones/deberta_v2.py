"""DeBERTa v2 and v3 (He et al. 2021, microsoft/DeBERTa; DeBERTaV3, He et al. 2021)."""

import keras

from keras_bert3.backbones.deberta import DebertaBackbone
from keras_bert3.layers.deberta_embeddings import NGramConvolution
from keras_bert3.layers.disentangled_self_attention import SharedDisentangledSelfAttention


@keras.saving.register_keras_serializable(package="keras_bert3")
class DebertaV2Backbone(DebertaBackbone):
    """DeBERTa v2 and v3: distances in log buckets, shared projections, an optional convolution.

    Differs from `DebertaBackbone` in `SharedDisentangledSelfAttention`, in a normalisation of the
    relative embeddings, and in `NGramConvolution` after the first block (v2-xlarge and xxlarge).
    v3 has the network of v2 without the convolution; what is new in it is the pretraining.

    Args:
        *arguments: of `DebertaBackbone`; `span` is the number of buckets on either side (256).
        max_position: distance at which buckets end; as `max_sequence_length` when None.
        convolution_size: tokens that the convolution sees (3); 0 for none.
        convolution_activation: `gelu_erf` in the released models.
        **kwargs: of `DebertaBackbone`.
    """

    config_names = (
        *DebertaBackbone.config_names,
        "max_position",
        "convolution_size",
        "convolution_activation",
    )
    relative_norm = True

    def __init__(
        self,
        *arguments,
        span=256,
        max_position=None,
        convolution_size=0,
        convolution_activation="gelu_erf",
        max_sequence_length=512,
        **kwargs,
    ):
        own = {
            "max_position": max_sequence_length if max_position is None else max_position,
            "convolution_size": convolution_size,
            "convolution_activation": convolution_activation,
        }
        for name, value in own.items():
            setattr(self, name, value)
        super().__init__(*arguments, max_sequence_length=max_sequence_length, span=span, **kwargs)

    def make_layers(self):
        """Create the parts, with the convolution where there is one."""
        super().make_layers()
        if self.convolution_size:
            self.convolution = NGramConvolution(
                self.convolution_size,
                activation=self.convolution_activation,
                dropout=self.dropout,
                layer_norm_epsilon=self.layer_norm_epsilon,
                dtype=self.dtype_policy,
                name="convolution",
            )

    def attention(self, **arguments):
        """Create the attention of one block."""
        return SharedDisentangledSelfAttention(
            self.num_heads, span=self.span, max_position=self.max_position, **arguments
        )

    def build(self, inputs_shape=None):
        """Create every weight."""
        super().build()
        if self.convolution_size:
            self.convolution.build((None, None, self.hidden_dim))

    def after_block(self, i, hidden, embeddings, is_real, training):
        """Add the n-grams after the first block."""
        if i > 0 or not self.convolution_size:
            return hidden
        return self.convolution(embeddings, hidden, is_real, training=training)
