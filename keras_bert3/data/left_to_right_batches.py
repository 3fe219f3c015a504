"""BERT's examples for a left-to-right language model: every token is predicted, none is hidden.

Devlin et al. 2018, section 5.1: "a left-context-only model which is trained using a standard
left-to-right LM, rather than an MLM". Rows are [CLS] A [SEP], as the masked LM's are.
"""

import numpy as np

from keras_bert3.data.assembly import assemble
from keras_bert3.data.pretraining_batches import Batch, EvaluationBatches, PretrainingBatches


class LeftToRightBatches(PretrainingBatches):
    """Endless training batches, in the form of `PretrainingBatches`; see `following_tokens`."""

    def _make(self, rows: np.ndarray, mask_names: np.ndarray, weights: np.ndarray) -> Batch:
        return following_tokens(self, rows, weights)


class LeftToRightEvaluation(EvaluationBatches):
    """Every example once, in the form of `EvaluationBatches`; see `following_tokens`."""

    def _make(self, rows: np.ndarray, mask_names: np.ndarray, weights: np.ndarray) -> Batch:
        return following_tokens(self, rows, weights)


def following_tokens(
    batches: LeftToRightBatches | LeftToRightEvaluation, rows: np.ndarray, weights: np.ndarray
) -> Batch:
    """Ask the hidden state at each place for the token after it.

    Args:
        batches: whose corpus, examples and tokenizer to read.
        rows: numbers of examples `[b]`.
        weights: of the rows, float32 `[b]`.

    Returns:
        Inputs with `mask_positions` 0 ... t - 2; labels, the ids at 1 ... t - 1; weights, 0 where
        they are padding.
    """
    token_ids, segment_ids, padding_mask = assemble(
        batches.corpus.tokens, batches.examples[rows], batches.sequence_length, batches.tokenizer
    )
    places = np.arange(batches.sequence_length - 1, dtype="int32")
    inputs = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": padding_mask,
        "mask_positions": np.tile(places, (len(rows), 1)),
    }
    counts = (padding_mask[:, 1:] * weights[:, None]).astype("float32")
    return inputs, {"masked_lm": token_ids[:, 1:]}, {"masked_lm": counts}
