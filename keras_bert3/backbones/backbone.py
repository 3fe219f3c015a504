"""What every backbone shares: checked inputs, declared outputs, presets."""

import keras
import numpy as np
from keras import ops

from keras_bert3.training.fine_tuning import FineTuning
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.torch_products import use_onednn


class Backbone(keras.layers.Layer):
    """From token ids to contextual vectors; the base of `BertBackbone` and its siblings.

    A subclass sets `vocabulary_size`, `hidden_dim`, `num_layers`, `num_segments` and
    `max_sequence_length`, builds itself in its constructor (its shapes do not depend on the
    input), and implements `call`.

    Call arguments:
        inputs: a dict of `token_ids` `[b, q]`, `padding_mask` (`[b, k]`, nonzero for real tokens,
            or any shape that `SelfAttention` takes) and, where the paper has them, `segment_ids`
            `[b, q]` (0 everywhere when absent).
        layer_outputs: also return the output of each layer.
        training: whether dropout is on.

    Returns:
        A dict of `sequence_output` `[b, q, w]`, `pooled_output` `[b, w]` where the paper has it,
        and on request `layer_outputs`, L + 1 times `[b, q, w]`: the embeddings, then layer 1 to L.
    """

    has_pooler = False
    fine_tuning = FineTuning(BertAdam, 3e-5, 0.1)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        use_onednn()

    @property
    def token_embeddings(self):
        """The token table `[v, w]`, which language-model heads share."""
        return self.embeddings.token.embeddings

    def check_inputs(self, inputs):
        """Return `token_ids`, `segment_ids` and `padding_mask`, or say what is wrong with them.

        Ids outside the tables are refused wherever their values can be read, which is not the case
        inside a compiled function.
        """
        if not isinstance(inputs, dict) or not {"token_ids", "padding_mask"} <= set(inputs):
            received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                "Expected `inputs` to be a dict with the keys 'token_ids' and 'padding_mask' (and "
                f"'segment_ids' where the model has segments). Received: {received}"
            )
        token_ids = inputs["token_ids"]
        if len(token_ids.shape) != 2:
            raise ValueError(
                "Expected `token_ids` of shape (batch, length). "
                f"Received: shape={tuple(token_ids.shape)}"
            )
        length = token_ids.shape[1]
        if isinstance(length, int) and length > self.max_sequence_length:
            raise ValueError(
                f"Expected sequences of at most {self.max_sequence_length} tokens, the size of the "
                f"position table. Received: sequence length {length}"
            )
        segment_ids = inputs.get("segment_ids")
        if segment_ids is None:
            segment_ids = ops.zeros_like(token_ids)
        mask = inputs["padding_mask"]
        if None not in (length, mask.shape[-1]) and length != mask.shape[-1]:
            raise ValueError(
                "Expected `padding_mask` to have a value a token. Received: shape "
                f"{tuple(mask.shape)} beside `token_ids` of shape {tuple(token_ids.shape)}"
            )
        check_range("token_ids", token_ids, self.vocabulary_size)
        check_range("segment_ids", segment_ids, self.num_segments)
        return token_ids, segment_ids, mask

    def compute_output_spec(self, inputs, layer_outputs=False, training=None):
        """Declare the outputs for symbolic inputs, lengths unknown or not."""
        token_ids, _, _ = self.check_inputs(inputs)
        batch, length = token_ids.shape
        sequence = (batch, length, self.hidden_dim)
        outputs = {"sequence_output": self._tensor(sequence)}
        if self.has_pooler:
            outputs["pooled_output"] = self._tensor((batch, self.hidden_dim))
        if layer_outputs:
            outputs["layer_outputs"] = [self._tensor(sequence) for _ in range(self.num_layers + 1)]
        return outputs

    def _tensor(self, shape):
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def make_pooler(self):
        """Create what a classifier puts between this backbone and itself, built; None for nothing.

        DeBERTa's is new in every fine-tuning; BERT's is a part of the backbone, GPT-1 has none.
        """
        return None

    def pool(self, outputs, inputs, pooler=None, training=None):
        """Summarise sequences for a classifier.

        Args:
            outputs: what a call returned for `inputs`.
            inputs: the call's.
            pooler: what `make_pooler` returned.
            training: whether dropout is on.

        Returns:
            `[b, w]`; here the paper's `pooled_output`.
        """
        return outputs["pooled_output"]

    @classmethod
    def from_preset(cls, preset, **overrides):
        """Load a backbone with its weights from a folder.

        Args:
            preset: the folder, as written by `save_to_preset`.
            overrides: constructor arguments that replace the stored ones, such as `dropout=0.0`.

        Raises:
            ValueError: if the folder does not hold a backbone of this class.
        """
        from keras_bert3.checkpoints import preset as presets

        return presets.load_backbone(preset, cls, **overrides)

    def save_to_preset(self, preset, overwrite=False, tokenizer=None):
        """Write `config.json`, `model.weights.h5` and its checksum into the folder `preset`.

        Args:
            preset: a new or empty folder.
            overwrite: replace the checkpoint that stands there.
            tokenizer: to be stored beside the weights, for the tasks that will load them.
        """
        from keras_bert3.checkpoints import preset as presets

        presets.save_backbone(self, preset, overwrite, tokenizer)


def check_range(name, ids, size):
    """Refuse ids outside [0, size) where their values can be read.

    Raises:
        ValueError: naming the first offending id and where it stands.
    """
    try:
        values = np.asarray(ids)
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return  # symbolic, traced, or on an accelerator
    outside = (values < 0) | (values >= size)
    if values.size and outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"Expected `{name}` in the range [0, {size}). Received: {values[where]} at position "
            f"{where}"
        )
