"""GPT-1's pretraining task: the next token, from all before it."""

import inspect

import keras
import numpy as np
from keras import ops

from keras_bert3.metrics.causal_lm import Perplexity
from keras_bert3.tasks import generation
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.samplers import Greedy
from keras_bert3.tasks.task import Task
from keras_bert3.training.optimizers import GPTAdam


class CausalLMPreprocessor(Preprocessor):
    """Texts as they are: no token is put around them, padding stands on the right.

    Args:
        tokenizer: turns a list of strings into lists of ids, and knows `pad_id`.
        sequence_length: see `Preprocessor`.
    """

    def pack(self, first, second=None):
        """Truncate and pad lists of ids: `token_ids` int32 and `padding_mask` bool, `[b, q]`."""
        if second is not None:
            raise ValueError("Expected one text a row. Received: pairs of texts")
        length = self.sequence_length or max(max(map(len, first), default=0), 2)
        token_ids = np.full((len(first), length), self.tokenizer.pad_id, "int32")
        padding_mask = np.zeros((len(first), length), bool)
        for row, ids in enumerate(first):
            kept = ids[:length]
            token_ids[row, : len(kept)], padding_mask[row, : len(kept)] = kept, True
        return {"token_ids": token_ids, "padding_mask": padding_mask}


@keras.saving.register_keras_serializable(package="keras_bert3")
class CausalLM(Task):
    """Predict each token from those before it.

        loss = sum_t w_t (-log p(u_t | u_1 ... u_{t-1})) / sum_t w_t,  p = softmax(h_n W_e^T)

    Radford et al. 2018, equations 1 and 2. The output matrix is the token table, without a bias.
    Every token weighs the same, whatever its row; softmax and loss are in float32.

    Args:
        backbone: a `GPTBackbone`, or an `LSTMBackbone` to compare it with.
        preprocessor: a `CausalLMPreprocessor`, or None for those who bring tensors.

    Call arguments:
        inputs: the backbone's.

    Returns:
        Logits `[b, q, v]`; those at q are for the token after it.

    Example:
        >>> task = CausalLM(GPTBackbone(**sizes.GPT["base"]))
        >>> task.compile()
        >>> task.fit(LanguageModelBatches(corpus, documents).forever(), steps_per_epoch=100)
    """

    preprocessor_class = CausalLMPreprocessor

    def __init__(self, backbone, preprocessor=None, **kwargs):
        super().__init__(backbone, preprocessor, **kwargs)
        if "token_table" not in inspect.signature(backbone.call).parameters:
            raise ValueError(
                f"Expected a backbone that looks to the left only, such as `GPTBackbone`. "
                f"Received: {type(backbone).__name__}"
            )

    def call(self, inputs, training=None):
        """Score the vocabulary at every position."""
        outputs = self.backbone(inputs, token_table=True, training=training)
        return ops.einsum("bqw,vw->bqv", outputs["sequence_output"], outputs["token_table"])

    def default_compile(self):
        """GPT-1's optimiser; cross-entropy over tokens; perplexity and accuracy."""
        return {
            "optimizer": GPTAdam(),
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": [
                Perplexity(),
                keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
            ],
        }

    def prepare(self, texts, labels, weights, indices, epoch):
        """Shift a batch of texts by one: what follows each token is its label."""
        if labels is not None:
            raise ValueError("Expected texts alone, which are their own labels. Received: y too")
        x = self.preprocess(texts)
        following = np.roll(x["token_ids"], -1, axis=1)
        counts = np.roll(x["padding_mask"], -1, axis=1).astype("float32")
        counts[:, -1] = 0.0
        row_weights = np.ones(len(counts), "float32") if weights is None else weights
        return x, following, counts * np.asarray(row_weights)[:, None]

    def generate(self, prompts, max_length, sampler=None, end_id=None):
        """Go on writing.

        Args:
            prompts: a string or a list of strings; without a preprocessor, lists of ids. Each has
                at least one token; they may differ in length.
            max_length: tokens of a prompt and its continuation together, at most.
            sampler: how tokens are chosen, see `tasks/samplers.py`; `Greedy()` when None.
            end_id: the token after which a continuation ends; it is kept.

        Returns:
            What `prompts` is: texts (standardised, prompt included) or lists of ids.

        Raises:
            ValueError: for an empty prompt, or a `max_length` that no prompt is shorter than or the
                position table has no room for, or a backbone that keeps no keys and values.

        Example:
            >>> task.generate("the whale", 60, Sample(top_k=40, seed=1))
        """
        if isinstance(prompts, str):
            return self.generate([prompts], max_length, sampler, end_id)[0]
        is_text = len(prompts) > 0 and isinstance(prompts[0], str)
        if is_text:
            self.preprocess("")  # refuses text where there is no preprocessor
        rows = self.preprocessor.tokenizer(list(prompts)) if is_text else prompts
        ids = generation.generate(self, rows, max_length, sampler or Greedy(), end_id)
        return [self.preprocessor.tokenizer.decode(row) for row in ids] if is_text else ids
