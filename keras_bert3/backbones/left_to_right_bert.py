"""BERT that looks to the left only: an ablation of its paper."""

import keras
from keras import ops

from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.layers.last_token import last_token
from keras_bert3.layers.masks import attention_mask, causal_mask


@keras.saving.register_keras_serializable(package="keras_bert3")
class LeftToRightBertBackbone(BertBackbone):
    """`BertBackbone` whose queries see the keys up to themselves, in fine-tuning as well.

    Devlin et al. 2018, section 5.1, "LTR & No NSP": "the left-only constraint was also applied at
    fine-tuning, because removing it introduced a pre-train/fine-tune mismatch". There [CLS], which
    stands first, sees itself alone. The paper does not say what its classifiers read instead; here
    it is the last real token, [SEP], which sees the whole row:

        pooled_output = tanh(W h_L[last] + b)

    Arguments, call arguments and outputs: see `BertBackbone`.
    """

    def visible(self, token_ids, padding_mask):
        """Real tokens that do not stand behind the query."""
        return ops.logical_and(causal_mask(ops.shape(token_ids)[1]), attention_mask(padding_mask))

    def call(self, inputs, layer_outputs=False, training=None):
        """Run the network on a batch."""
        outputs = super().call(inputs, layer_outputs, training)
        last = last_token(outputs["sequence_output"], inputs["padding_mask"])
        return {**outputs, "pooled_output": self.pooler(last[:, None])}
