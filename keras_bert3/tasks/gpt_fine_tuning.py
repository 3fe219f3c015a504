"""GPT-1's fine-tuning: every task as rows of tokens, one linear layer, the language model beside
(Radford et al. 2018, sections 3.2 and 3.3).
"""

import keras
from keras import ops

from keras_bert3.checkpoints.vocabulary_size import resize_vocabulary
from keras_bert3.tasks.auxiliary_lm import AuxiliaryLMTask, check_rows, join_rows
from keras_bert3.tasks.gpt_preprocessors import (
    GPTMultipleChoicePreprocessor,
    GPTPreprocessor,
    GPTSimilarityPreprocessor,
    with_task_tokens,
)
from keras_bert3.tasks.multiple_choice import MultipleChoice
from keras_bert3.tasks.text_classifier import TextClassifier


def add_task_tokens(task):
    """Give a task the start, delimiter and classify tokens, in its tokenizer and its token table.

    Their rows are new, drawn as GPT-1's tables are from N(0, 0.02), and stand after the vocabulary,
    which keeps its ids.

    Args:
        task: with a preprocessor around a `BytePairTokenizer`.

    Returns:
        A copy with the tokens; `task` itself where it has them, or has no preprocessor.
    """
    if task.preprocessor is None:
        return task
    tokenizer = with_task_tokens(task.preprocessor.tokenizer)
    if tokenizer is task.preprocessor.tokenizer:
        return task
    larger = resize_vocabulary(task, tokenizer.vocabulary_size)[0]
    larger.preprocessor = type(task.preprocessor)(tokenizer, **task.preprocessor.get_config())
    return larger


class _GPTTask(AuxiliaryLMTask):
    """What the three tasks share: the special tokens arrive with the checkpoint."""

    @classmethod
    def from_preset(cls, preset, **overrides):
        """Load as `Task.from_preset` does; special tokens that the checkpoint lacks are added."""
        return add_task_tokens(super().from_preset(preset, **overrides))


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTTextClassifier(_GPTTask, TextClassifier):
    """Classify texts, or pairs whose order counts, such as premise and hypothesis.

        P(y | x) = softmax(h_classify W_y)
        loss = L_task + auxiliary_lm_weight * L_lm

    Equations 3 to 5. The classifier reads the last layer at the classify token.

    Args:
        backbone: a `GPTBackbone`, with the special tokens in its vocabulary.
        num_classes: see `TextClassifier`.
        preprocessor: a `GPTPreprocessor`; None for those who bring tensors.
        labels: see `TextClassifier`.
        dropout: see `TextClassifier`.
        use_bias: see `TextClassifier`.
        auxiliary_lm_weight: lambda (0.5); 0 leaves the language model out.

    Call arguments:
        inputs: the backbone's.

    Returns:
        Logits `[b, c]`.

    Example:
        >>> task = GPTTextClassifier.from_preset("gpt1", labels=["negative", "positive"])
        >>> task.fit(["a joy", "a bore"], ["positive", "negative"])
    """

    preprocessor_class = GPTPreprocessor

    def __init__(
        self,
        backbone,
        num_classes=None,
        preprocessor=None,
        labels=None,
        dropout=None,
        use_bias=True,
        auxiliary_lm_weight=0.5,
        **kwargs,
    ):
        super().__init__(backbone, num_classes, preprocessor, labels, dropout, use_bias, **kwargs)
        self.auxiliary_lm_weight = auxiliary_lm_weight

    def call(self, inputs, training=None):
        """Score a batch."""
        summary = self.summarize(inputs, training)
        return self.classifier(self.dropout_layer(summary, training=training))


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTSimilarity(GPTTextClassifier):
    """Compare two texts whose order does not count.

        score = (h_classify(a, b) + h_classify(b, a)) W_y

    Section 3.3. With `num_classes=1` the score is a number, such as a similarity from 0 to 5;
    otherwise a class, such as paraphrase or not.

    Call arguments:
        inputs: the backbone's, each `[b, 2, q]`: both orders.

    Returns:
        Logits `[b, c]`.

    Example:
        >>> task = GPTSimilarity.from_preset("gpt1", num_classes=1)
        >>> task.fit((["a dog runs"], ["a dog is running"]), [4.6])
    """

    preprocessor_class = GPTSimilarityPreprocessor

    def call(self, inputs, training=None):
        """Score a batch of pairs."""
        check_rows(inputs, "2 orders")
        summaries = self.summarize(join_rows(inputs), training)
        added = ops.sum(ops.reshape(summaries, (-1, 2, summaries.shape[-1])), axis=1)
        return self.classifier(self.dropout_layer(added, training=training))


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTMultipleChoice(_GPTTask, MultipleChoice):
    """Choose the answer to a question about a document, or the end of a story.

        score_k = h_classify(document question, answer_k) w
        P(k) = softmax(score)_k

    Section 3.3. Dropout on the vectors that are read is the same for all answers to a question, as
    in openai/finetune-transformer-lm train.py.

    Args:
        backbone: a `GPTBackbone`, with the special tokens in its vocabulary.
        preprocessor: a `GPTMultipleChoicePreprocessor`; None for those who bring tensors.
        dropout: rate on the summary; the backbone's when None.
        auxiliary_lm_weight: see `GPTTextClassifier`.

    Call arguments:
        inputs: the backbone's, each `[b, n, q]`: a row for every choice.

    Returns:
        Scores `[b, n]`.

    Example:
        >>> task = GPTMultipleChoice.from_preset("gpt1")
        >>> task.fit(([(document, question)], [["an answer", "another"]]), [0])
    """

    preprocessor_class = GPTMultipleChoicePreprocessor

    def __init__(
        self, backbone, preprocessor=None, dropout=None, auxiliary_lm_weight=0.5, **kwargs
    ):
        super().__init__(backbone, preprocessor, dropout, **kwargs)
        self.auxiliary_lm_weight = auxiliary_lm_weight
        self.dropout_layer = keras.layers.Dropout(
            self.dropout,
            noise_shape=(None, 1, None),
            dtype=backbone.dtype_policy,
            name="summary_dropout",
        )

    def call(self, inputs, training=None):
        """Score the choices of a batch."""
        check_rows(inputs, "choices")
        summaries = self.summarize(join_rows(inputs), training)
        count = ops.shape(inputs["token_ids"])[1]
        summaries = ops.reshape(summaries, (-1, count, summaries.shape[-1]))
        scores = self.multiple_choice_head(self.dropout_layer(summaries, training=training))
        return ops.squeeze(scores, -1)

    def preprocess(self, texts):
        """Frame every context, or pair of document and question, with each of its choices.

        Raises:
            ValueError: unless every context has as many choices.
        """
        if isinstance(texts, str) or self.preprocessor is None:
            return super().preprocess(texts)
        contexts, choices = texts
        counts = sorted({len(row) for row in choices})
        if len(counts) != 1:
            raise ValueError(f"Expected as many choices for every context. Received: {counts}")
        return self.preprocessor.frame(contexts, choices)
