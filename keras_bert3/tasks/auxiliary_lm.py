"""The language model beside a supervised task (Radford et al. 2018, section 3.2, equation 5)."""

import keras
from keras import ops

from keras_bert3.tasks.sequence_task import SequenceTask


def language_model_loss(hidden, token_table, token_ids, padding_mask):
    """Average over rows of each row's mean negative log-likelihood of its tokens.

        L = mean_b ( sum_t m_t (-log p(u_t | u_1 ... u_{t-1})) / sum_t m_t )

    Every real token but a row's first is predicted, special tokens included, as in
    openai/finetune-transformer-lm train.py. In float32.

    Args:
        hidden: last layer `[b, q, w]`.
        token_table: output matrix `[v, w]`.
        token_ids: `[b, q]`.
        padding_mask: `[b, q]`, nonzero for real tokens, which stand in one stretch.

    Returns:
        A number.
    """
    logits = ops.einsum("bqw,vw->bqv", hidden[:, :-1], token_table)
    losses = keras.losses.sparse_categorical_crossentropy(
        token_ids[:, 1:], ops.cast(logits, "float32"), from_logits=True
    )
    real = ops.not_equal(ops.cast(padding_mask, "int32"), 0)
    counts = ops.cast(ops.logical_and(real[:, 1:], real[:, :-1]), "float32")
    return ops.mean(ops.sum(losses * counts, axis=1) / ops.maximum(ops.sum(counts, axis=1), 1.0))


class AuxiliaryLMTask(SequenceTask):
    """A `SequenceTask` that goes on learning its language while it is trained.

        L_3 = L_task + auxiliary_lm_weight * L_lm

    A subclass takes `auxiliary_lm_weight` (0.5; 0 leaves the language model out) and sets it.
    Labels' sample weights do not reach L_lm.
    """

    auxiliary_lm_weight: float

    def summarize(self, inputs, training=None):
        """Run the backbone on rows, add L_lm in training, and read each row: `[b, w]`."""
        outputs = self.backbone(inputs, token_table=True, training=training)
        if training and self.auxiliary_lm_weight:
            loss = language_model_loss(
                outputs["sequence_output"],
                outputs["token_table"],
                inputs["token_ids"],
                inputs["padding_mask"],
            )
            self.add_loss(self.auxiliary_lm_weight * loss)
        return self.backbone.pool(outputs, inputs, training=training)

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "auxiliary_lm_weight": self.auxiliary_lm_weight}


def join_rows(inputs):
    """Bring inputs `[b, n, q]` to rows `[b n, q]`."""
    return {name: ops.reshape(value, (-1, ops.shape(value)[2])) for name, value in inputs.items()}


def check_rows(inputs, example: str) -> None:
    """Refuse inputs of another rank than `[b, n, q]`."""
    shape = tuple(inputs["token_ids"].shape)
    if len(shape) != 3:
        raise ValueError(
            f"Expected inputs of shape (batch, {example}, length). "
            f"Received: token_ids of shape {shape}"
        )
