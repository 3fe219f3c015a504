"""One label a text or pair of texts, or one number."""

import keras
import numpy as np
from keras import ops

from keras_bert3.tasks.labels import check_names, class_ids, scores
from keras_bert3.tasks.sequence_task import SequenceTask


@keras.saving.register_keras_serializable(package="keras_bert3")
class ClassificationLoss(keras.losses.Loss):
    """-log softmax(logits)[label], in float32, averaged over the batch by weight.

    A label that is no class has no loss: it gives NaN on every backend, where some would count it
    as right, others as wrong.

    Call arguments:
        y_true: integers `[b]`.
        y_pred: logits `[b, c]`.
    """

    def __init__(self, name="classification_loss", reduction="mean_with_sample_weight", **kwargs):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        """Compute `[b]` losses."""
        labels = ops.cast(ops.reshape(y_true, (-1,)), "int32")
        known = ops.logical_and(labels >= 0, labels < ops.shape(y_pred)[-1])
        safe = ops.where(known, labels, 0)
        losses = keras.losses.sparse_categorical_crossentropy(
            safe, ops.cast(y_pred, "float32"), from_logits=True
        )
        return ops.where(known, losses, float("nan"))


@keras.saving.register_keras_serializable(package="keras_bert3")
class TextClassifier(SequenceTask):
    """Classify texts or pairs of texts, or give each a number.

        logits = Dropout(pool(backbone(tokens))) W + b
        loss = mean_b (-log softmax(logits)[label]),  or with one output  mean_b (logit - label)^2

    Devlin et al. 2018, section 4.1; how a backbone is read is in `SequenceTask`.

    Args:
        backbone: any `Backbone`.
        num_classes: outputs; 1 for a regression, such as similarity scores.
        preprocessor: turns texts into tensors; None for those who bring tensors.
        labels: names of the classes, in the order of the outputs. They are kept in presets, and
            labels that are names find their class by them.
        dropout: rate on the summary; the backbone's when None.
        use_bias: whether the head has one; Hugging Face's GPT-1 has none.

    Call arguments:
        inputs: the backbone's.

    Returns:
        Logits `[b, c]`.

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, or they contradict each other.

    Example:
        >>> task = TextClassifier.from_preset("bert", labels=["negative", "positive"])
        >>> task.fit(["a joy", "a bore"], ["positive", "negative"])
        >>> task.classify("a joy from beginning to end")
        [('positive', 0.93)]
    """

    head_names = ("pooler", "classifier")
    fine_tuned_heads = ("pooler", "classifier")

    def __init__(
        self,
        backbone,
        num_classes=None,
        preprocessor=None,
        labels=None,
        dropout=None,
        use_bias=True,
        **kwargs,
    ):
        names, count = check_names(labels, num_classes)
        super().__init__(backbone, "classifier", count, preprocessor, dropout, use_bias, **kwargs)
        self.num_classes = count
        self.labels = names

    @property
    def is_regression(self) -> bool:
        """Whether the one output is a number."""
        return self.num_classes == 1

    def call(self, inputs, training=None):
        """Score a batch."""
        return self.score(inputs, training)

    def compute_output_spec(self, inputs, training=None):
        """Declare logits `[b, c]` for symbolic inputs."""
        batch = inputs["token_ids"].shape[0]
        return keras.KerasTensor((batch, self.num_classes), self.backbone.compute_dtype)

    def default_compile(self):
        """The paper's optimiser; cross-entropy and accuracy, or mean squared error."""
        if self.is_regression:
            loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
            metrics = [keras.metrics.MeanSquaredError(name="mean_squared_error")]
        else:
            loss = ClassificationLoss()
            metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        return {
            "optimizer": self.default_optimizer(None),
            "loss": loss,
            "weighted_metrics": metrics,
        }

    def encode_labels(self, labels):
        """Numbers of classes for names or numbers, see `class_ids`; scores for a regression."""
        if labels is None:
            raise ValueError("Expected a label for each text. Received: y=None, no labels")
        return (
            scores(labels)
            if self.is_regression
            else class_ids(labels, self.num_classes, self.labels)
        )

    def probabilities(self, x, batch_size=None, **kwargs):
        """Predict softmax(logits), float32 `[n, c]`, for whatever `predict` takes.

        Raises:
            ValueError: for a regression.
        """
        if self.is_regression:
            raise ValueError(
                "Expected a classifier of two classes or more. Received: a regression, whose "
                "`predict` gives the numbers"
            )
        logits = self.predict(x, batch_size, **{"verbose": 0, **kwargs}).astype("float32")
        exponentials = np.exp(logits - logits.max(-1, keepdims=True))
        return exponentials / exponentials.sum(-1, keepdims=True)

    def classify(self, x, top_k=1, batch_size=None):
        """Name the likeliest classes.

        Args:
            x: whatever `predict` takes.
            top_k: how many classes.
            batch_size: of the predictions.

        Returns:
            For a string a list of `(label, probability)`, likeliest first; otherwise a list of
            these. A class without a name goes by its number.
        """
        names = self.labels or list(range(self.num_classes))
        rows = [
            [(names[i], float(row[i])) for i in np.argsort(-row, kind="stable")[:top_k]]
            for row in self.probabilities(x, batch_size)
        ]
        return rows[0] if isinstance(x, str) else rows

    @classmethod
    def loaded_config(cls, stored, overrides, new_heads=()):
        """Refuse to count or name a trained head's classes otherwise than it was trained.

        Raises:
            ValueError: naming what was stored and what was asked for.
        """
        asked = {"num_classes", "labels"} & set(overrides)
        if "classifier" in new_heads and asked:
            stored = {k: v for k, v in stored.items() if k not in ("num_classes", "labels")}
        for name in ("num_classes", "labels"):
            old, new = stored.get(name), overrides.get(name)
            if old is not None and new is not None and _plain(old) != _plain(new):
                raise ValueError(
                    f"Expected {name}={old!r}, with which the classifier was trained (labels that "
                    'are names find their class by themselves), or new_heads=("classifier",). '
                    f"Received: {name}={new!r}"
                )
        return {**stored, **overrides}

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
        }


def _plain(value):
    return list(value) if isinstance(value, list | tuple) else value
