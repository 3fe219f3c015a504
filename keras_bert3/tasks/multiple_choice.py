"""Which of several texts continues or answers another."""

import keras
import numpy as np
from keras import ops

from keras_bert3.tasks.labels import class_ids
from keras_bert3.tasks.sequence_task import SequenceTask
from keras_bert3.tasks.text_classifier import ClassificationLoss


@keras.saving.register_keras_serializable(package="keras_bert3")
class MultipleChoice(SequenceTask):
    """Choose one of several texts that go with a first one.

        score_i = Dropout(pool(backbone(context, choice_i))) w + b
        loss = mean_b (-log softmax(score_1 ... score_n)[answer])

    Devlin et al. 2018, section 4.4; Radford et al. 2018, section 3.3. One vector scores every
    choice, so their order and number may vary from batch to batch.

    Args:
        backbone: any `Backbone`.
        preprocessor: packs a context and a choice as a pair; None for those who bring tensors.
        dropout: rate on the summary; the backbone's when None.

    Call arguments:
        inputs: the backbone's, each `[b, n, q]`: a row for every choice.

    Returns:
        Scores `[b, n]`.

    Example:
        >>> task = MultipleChoice.from_preset("bert")
        >>> task.fit((["It rained."], [["The street got wet.", "The street got loud."]]), [0])
        >>> task.choose(("It froze.", ["The lake steamed.", "The lake iced over."]))
        1
    """

    head_names = ("pooler", "multiple_choice_head")
    fine_tuned_heads = ("pooler", "multiple_choice_head")

    def __init__(self, backbone, preprocessor=None, dropout=None, **kwargs):
        super().__init__(backbone, "multiple_choice_head", 1, preprocessor, dropout, **kwargs)

    def call(self, inputs, training=None):
        """Score the choices of a batch."""
        token_ids = inputs["token_ids"]
        if len(token_ids.shape) != 3:
            raise ValueError(
                "Expected inputs of shape (batch, choices, length). "
                f"Received: token_ids of shape {tuple(token_ids.shape)}"
            )
        rows = {name: _join_choices(value) for name, value in inputs.items()}
        return ops.reshape(self.score(rows, training), (-1, ops.shape(token_ids)[1]))

    def compute_output_spec(self, inputs, training=None):
        """Declare scores `[b, n]` for symbolic inputs."""
        return keras.KerasTensor(inputs["token_ids"].shape[:2], self.backbone.compute_dtype)

    def default_compile(self):
        """The paper's optimiser; cross-entropy over the choices, and accuracy."""
        return {
            "optimizer": self.default_optimizer(None),
            "loss": ClassificationLoss(),
            "weighted_metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }

    def encode_labels(self, labels):
        """Numbers of choices, counted from 0."""
        if labels is None:
            raise ValueError("Expected the number of a choice for each context. Received: y=None")
        return class_ids(labels, np.iinfo("int32").max)

    def is_text(self, x):
        """Whether `x` is a pair: a context and its choices, or lists of both."""
        if isinstance(x, str):
            return True
        if not isinstance(x, tuple) or len(x) != 2 or not len(x[0]) or not len(x[1]):
            return False
        choices = x[1] if isinstance(x[0], str) else x[1][0]
        return not isinstance(choices, str) and isinstance(choices[0], str)

    def preprocess(self, texts):
        """Pack every context with each of its choices: arrays `[b, n, q]`.

        Args:
            texts: a list of contexts and a list with as many lists of choices.

        Raises:
            ValueError: unless every context has as many choices.
        """
        if isinstance(texts, str):
            return super().preprocess(texts)
        contexts, choices = texts
        counts = {len(row) for row in choices}
        if len(counts) != 1:
            raise ValueError(
                f"Expected as many choices for every context. Received: {sorted(counts)}"
            )
        (count,) = counts
        firsts = [context for context in contexts for _ in range(count)]
        rows = super().preprocess((firsts, [choice for row in choices for choice in row]))
        return {
            name: value.reshape(len(contexts), count, *value.shape[1:])
            for name, value in rows.items()
        }

    def choose(self, x, batch_size=None):
        """Return the number of the best choice, counted from 0: one for one context, else int64."""
        single = isinstance(x, tuple) and isinstance(x[0], str)
        x = ([x[0]], [x[1]]) if single else x
        best = np.argmax(self.predict(x, batch_size, verbose=0), axis=1)
        return int(best[0]) if single else best

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "dropout": self.dropout}


def _join_choices(value):
    """`[b, n, ...]` to `[b n, ...]`."""
    shape = ops.shape(value)
    return ops.reshape(value, (-1, *shape[2:]))
