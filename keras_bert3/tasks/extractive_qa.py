"""Answers to questions, cut out of texts: SQuAD 1.1 and 2.0."""

import logging
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert3.data.answers import locate_answers
from keras_bert3.tasks.answers import (
    MOST_TOKENS,
    Answer,
    answers_of,
    merge,
    window_candidates,
)
from keras_bert3.tasks.preprocessor import as_texts, is_pair, is_text
from keras_bert3.tasks.question_windows import ExtractiveQAPreprocessor, targets, token_span
from keras_bert3.tasks.task import Task
from keras_bert3.tasks.text_batches import TextBatches
from keras_bert3.tasks.window_batches import run_in_batches

_LOG = logging.getLogger(__name__)


@keras.saving.register_keras_serializable(package="keras_bert3")
class ExtractiveQA(Task):
    """Find where in a text a question is answered, or that it is not.

        start_i = S h_i + b_S,  end_i = E h_i + b_E
        loss = (-log softmax(start)[i] - log softmax(end)[j]) / 2

    for an answer from token i to token j; i = j = 0, which is [CLS], where a row holds no answer
    (Devlin et al. 2018, sections 4.2 and 4.3). An answer's score is start_i + end_j, that of no
    answer start_0 + end_0. Long texts are read in overlapping windows: an answer may start only
    in that window which shows most of its context, and there is none only as far as every window
    says so.

    Args:
        backbone: a `Backbone`; a pooler on it has no part in this task, and is frozen.
        preprocessor: an `ExtractiveQAPreprocessor`, or None for those who bring tensors.
        null_threshold: by how much no answer must be likelier than the best one to be given
            (SQuAD 2.0; `metrics.squad.best_thresholds` finds it on a development set, 0.0 is a
            start); None for texts that hold every answer (SQuAD 1.1).

    Call arguments:
        inputs: the backbone's.

    Returns:
        A dict of logits, `start` and `end`, each `[b, q]`; -30,000 at padding, so that a loss is
        the same however far its rows are padded.

    `fit` and `evaluate` take (questions, contexts) and answers: (start, end) in characters, a dict
    of lists `text` and `answer_start`, or None for no answer. `predict` on (questions, contexts)
    is `answer`, on tensors it returns logits.

    Example:
        >>> task = ExtractiveQA(backbone, ExtractiveQAPreprocessor(tokenizer))
        >>> task.fit((["Where is it?"], ["It is in Denver."]), [(9, 15)])
        >>> task.answer("Where is it?", "It is in Denver.").text
        'Denver'
    """

    head_names = ("span_head",)
    fine_tuned_heads = head_names
    preprocessor_class = ExtractiveQAPreprocessor

    def __init__(self, backbone, preprocessor=None, null_threshold=None, **kwargs):
        super().__init__(backbone, preprocessor, **kwargs)
        self.null_threshold = null_threshold
        if backbone.has_pooler:
            backbone.pooler.trainable = False
        self.span_head = keras.layers.Dense(
            2,
            kernel_initializer=backbone.initializer(),
            dtype=backbone.dtype_policy,
            name="span_head",
        )
        self.span_head.build((None, None, backbone.hidden_dim))

    def call(self, inputs, training=None):
        """Score every token as a start and as an end."""
        logits = self.span_head(self.backbone(inputs, training=training)["sequence_output"])
        is_real = ops.not_equal(ops.cast(inputs["padding_mask"], "int32"), 0)
        # float16 holds this number too, and softmax makes 0 of it
        logits = ops.where(is_real[..., None], logits, -3e4)
        return {"start": logits[..., 0], "end": logits[..., 1]}

    def default_optimizer(self, updates):
        """The paper's recipe for fine-tuning this backbone; see `FineTuning`."""
        return self.backbone.fine_tuning.make(updates)

    def default_compile(self) -> dict[str, Any]:
        """The paper's optimiser, the mean of both cross-entropies, accuracies."""
        return {
            "optimizer": self.default_optimizer(None),
            "loss": {
                name: keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight"
                )
                for name in ("start", "end")
            },
            "loss_weights": {"start": 0.5, "end": 0.5},
            "weighted_metrics": {
                name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
                for name in ("start", "end")
            },
        }

    def predict(self, x, batch_size=None, **kwargs):
        """Return answers to (questions, contexts), logits for anything else."""
        x = as_texts(x)
        if is_text(x):
            return self.answer(*_checked_pair(x), batch_size=batch_size)
        return super().predict(x, batch_size, **kwargs)

    def answer(self, questions, contexts, batch_size=None) -> Any:
        """Answer questions from texts.

        Args:
            questions: a string, or a list of them.
            contexts: as many texts, or one for all questions.
            batch_size: windows that are run together (32).

        Returns:
            An `Answer` for a string, or a list of them. Its text is a stretch of the context with
            its case, accents and spaces as they are there; "" for no answer.
        """
        if isinstance(questions, str):
            return self.candidates([questions], [contexts], 20, batch_size)[0][0]
        return [found[0] for found in self.candidates(questions, contexts, 20, batch_size)]

    def candidates(
        self, questions, contexts, count=20, batch_size=None, max_answer_length=MOST_TOKENS
    ) -> list[list[Answer]]:
        """Return the `count` likeliest answers to each question, that which is given first.

        With a `null_threshold` no answer is one more of them. Answers have at most
        `max_answer_length` tokens.
        """
        contexts = [contexts] * len(questions) if isinstance(contexts, str) else contexts
        self._check_preprocessor(questions, contexts)
        encoded = self.preprocessor.encode(questions, contexts)
        windows = self.preprocessor.windows(encoded)
        found = [[] for _ in encoded]
        pack = self.preprocessor.pack_windows
        for number, logits in run_in_batches(self, windows, pack, batch_size or 32):
            window = windows[number]
            found[window.question].append(
                window_candidates(
                    window, encoded[window.question], logits, count, max_answer_length
                )
            )
        return [
            answers_of(context, merge(parts, count), self.null_threshold)
            for context, parts in zip(contexts, found, strict=True)
        ]

    def arrays(self, questions, contexts, answers, weights=None) -> tuple[dict, dict, dict]:
        """Return all windows as arrays of one length, for `tf.data` and the like.

        Returns:
            `(x, y, sample_weight)`; a row of `x` is as the preprocessor's `element_spec` says.
        """
        windows, prepare = self._windows((questions, contexts), answers, weights)
        return prepare(windows, length=self.preprocessor.longest_row)

    def _check_preprocessor(self, questions, contexts) -> None:
        if self.preprocessor is None:
            self.preprocess(questions)  # says what is missing
        if len(questions) != len(contexts):
            raise ValueError(
                f"Expected a text for each of {len(questions)} questions. Received: {len(contexts)}"
            )

    def _text_batches(self, texts, labels=None, weights=None, batch_size=None, shuffle=False):
        """Windows of questions and their texts, in batches of `(x, y, sample_weight)`."""
        windows, prepare = self._windows(texts, labels, weights)
        return TextBatches(windows, prepare, None, None, batch_size or 32, shuffle)

    def _windows(self, texts, labels, weights):
        """All windows, and the function that turns some of them into a batch."""
        questions, contexts = _checked_pair(texts)
        self._check_preprocessor(questions, contexts)
        if labels is None:
            raise ValueError(
                "Expected an answer to every question, None where there is none. Received: y=None"
            )
        located = locate_answers(contexts, labels)
        _report(len(questions), located)
        encoded = self.preprocessor.encode(questions, contexts)
        tokens = [
            None if span is None else token_span(question, span)
            for question, span in zip(encoded, located.spans, strict=True)
        ]
        weights = np.ones(len(encoded)) if weights is None else np.asarray(weights)
        dropped = set(located.dropped)

        def prepare(rows, *_, length=None):
            x = self.preprocessor.pack_windows(rows, length)
            row_weights = weights[[row.question for row in rows]].astype("float32")
            return x, targets(rows, tokens), {"start": row_weights, "end": row_weights}

        windows = self.preprocessor.windows(encoded)
        return [window for window in windows if window.question not in dropped], prepare

    @classmethod
    def usual_preprocessor(cls, tokenizer, backbone, **arguments):
        """Create a preprocessor whose rows fit in the position table."""
        length = min(384, backbone.max_sequence_length)
        return cls.preprocessor_class(tokenizer, **{"sequence_length": length, **arguments})

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "null_threshold": self.null_threshold}


def _checked_pair(x):
    """Questions and contexts as lists, or an error."""
    if not is_pair(x):
        raise ValueError(
            "Expected a pair of lists, questions and contexts. "
            f"Received: {type(x).__name__} {str(x)[:60]!r}"
        )
    return list(x[0]), list(x[1])


def _report(count: int, located) -> None:
    """Say what became of the answers, where anything did."""
    if located.moved or located.dropped:
        _LOG.warning(
            "Kept %d of %d questions. Dropped %d whose answer is not in its text: %s. "
            "Found %d answers elsewhere than said: %s.",
            count - len(located.dropped),
            count,
            len(located.dropped),
            list(located.dropped[:10]),
            len(located.moved),
            list(located.moved[:10]),
        )
