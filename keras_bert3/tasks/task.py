"""A backbone with a head: the base of everything that is trained."""

import inspect
from typing import Any

import keras
import numpy as np

from keras_bert3.backbones.backbone import check_range
from keras_bert3.tasks.adversarial import adversarial_loss
from keras_bert3.tasks.grain_batches import GrainBatches, is_grain, with_length
from keras_bert3.tasks.kept_weights import kept_weights
from keras_bert3.tasks.preprocessor import Preprocessor, as_texts, is_nested_text, is_pair, is_text
from keras_bert3.tasks.text_batches import TextBatches, batches_by_length
from keras_bert3.tasks.varying_lengths import of_varying_lengths


class Task(keras.Model):
    """A `keras.Model` that takes strings or tensors.

    A subclass builds its heads in its constructor, names them in `head_names`, implements `call`
    and `prepare` (strings to arrays), and gives the paper's defaults in `default_compile`. Heads
    that fine-tuning brings, and no pretrained checkpoint has, are in `fine_tuned_heads`: they start
    anew on the checkpoint of a backbone or of another task.

    Args:
        backbone: a `Backbone`.
        preprocessor: turns strings into tensors; None for those who bring tensors.
    """

    head_names: tuple[str, ...] = ()
    fine_tuned_heads: tuple[str, ...] = ()
    preprocessor_class: type[Preprocessor] = Preprocessor
    adversarial: Any = None

    def __init__(self, backbone, preprocessor=None, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # ids arrive as floats under some distribution strategies
        self.backbone = backbone
        self.preprocessor: Any = preprocessor
        self.built = True  # the backbone and the heads build themselves

    def build(self, inputs_shape=None):
        """Nothing to do: weights exist once the constructor has run."""

    @property
    def heads(self) -> dict[str, keras.layers.Layer]:
        """The layers on top of the backbone, by attribute name."""
        return {name: getattr(self, name) for name in self.head_names if hasattr(self, name)}

    def default_compile(self) -> dict[str, Any]:
        """The paper's optimiser, loss and metrics, as arguments of `compile`."""
        raise NotImplementedError

    def default_optimizer(self, updates):
        """The paper's optimiser for a run of `updates`, where it is another than in `compile`."""
        return None

    def encode_labels(self, labels):
        """Turn labels into what the loss takes, or refuse them; before any step is taken."""
        return labels

    def compile(self, optimizer=None, loss=None, adversarial=None, **kwargs):
        """Configure training; what is left out takes the paper's value.

        `adversarial` adds a loss on perturbed embeddings to each training step; see `SiFT`.
        """
        if adversarial is not None and not hasattr(adversarial, "loss"):
            raise ValueError(
                f"Expected `adversarial` to be such as SiFT(). Received: {adversarial!r}"
            )
        self.adversarial = adversarial
        if adversarial is not None and not hasattr(self, "adversarial_seed"):
            self.adversarial_seed = keras.random.SeedGenerator()
        defaults = self.default_compile()
        if loss is not None:  # metrics belong to the outputs that a loss looks at
            defaults.pop("weighted_metrics", None)
        chosen = {"optimizer": optimizer, "loss": loss, **kwargs}
        given = {name: value for name, value in chosen.items() if value is not None}
        super().compile(**{**defaults, **given})

    def compile_from_config(self, config):
        """Compile as the task of a `.keras` file was; `adversarial` is not kept there."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of a batch; while training, with what `compile(adversarial=...)` adds."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if training and self.adversarial is not None:
            loss += adversarial_loss(self, x, y_pred, sample_weight)
        return loss

    def prepare(self, texts, labels, weights, indices, epoch):
        """Turn a batch of strings into `(x, y, sample_weight)`; see `TextBatches`.

        `epoch` is None outside training.
        """
        raise NotImplementedError

    def is_text(self, x) -> bool:
        """Whether `x` is text in a form that `preprocess` takes."""
        return is_text(x)

    def preprocess(self, texts):
        """Tokenise and pack strings, or a pair of lists of strings."""
        if self.preprocessor is None:
            raise ValueError(
                "Expected tensors, because this task has no preprocessor (preprocessor=None). "
                f"Received: text {str(texts)[:60]!r}"
            )
        texts = [texts] if isinstance(texts, str) else texts
        return self.preprocessor(*texts) if is_pair(texts) else self.preprocessor(texts)

    def fit(self, x=None, y=None, batch_size=None, shuffle=True, sample_weight=None, **kwargs):
        """Train on strings, arrays or anything `keras.Model.fit` takes.

        Where `compile` was not called, it is now, with the paper's schedule over as many updates as
        this call will do.
        """
        x, y = self._text_or_tensors(with_length(x), y)
        self._check(x)
        validation = with_length(kwargs.get("validation_data"))
        if isinstance(validation, tuple):
            validation = self._validation(*validation, batch_size=batch_size)
        kwargs["validation_data"] = of_varying_lengths(validation)
        if self.is_text(x):
            x = self._text_batches(x, y, sample_weight, batch_size=batch_size, shuffle=shuffle)
            y, sample_weight, shuffle, batch_size = None, None, False, None
        if not self.compiled:
            self.compile(self.default_optimizer(count_updates(x, batch_size, **kwargs)))
        is_batches = isinstance(x, TextBatches | GrainBatches) or is_grain(x)
        shuffle = shuffle and not (is_batches or hasattr(x, "__next__"))  # an order of its own
        x = of_varying_lengths(x, kwargs.get("class_weight"), shuffle)
        with kept_weights(self):
            return super().fit(
                x, y, batch_size, shuffle=shuffle, sample_weight=sample_weight, **kwargs
            )

    def make_train_function(self, force=False):
        """Create the optimiser's variables, and each loss's mean, before a step is compiled.

        Created while TensorFlow traces its first step, they would double the time of that; under a
        distribution strategy Keras creates them itself.
        """
        if getattr(self, "_distribute_strategy", None) is None:
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
            if isinstance(self.loss, dict) and not self._compile_loss.built:
                outputs = dict.fromkeys(self.loss, 0.0)  # their names are all that is looked at
                self._compile_loss.build(outputs, outputs)
        return super().make_train_function(force)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Return the loss and metrics on strings, arrays or anything Keras takes."""
        if not self.compiled:
            self.compile()
        x, y = self._text_or_tensors(with_length(x), y)
        if self.is_text(x):
            batches = self._text_batches(x, y, sample_weight, batch_size=batch_size)
            with kept_weights(self):
                return super().evaluate(of_varying_lengths(batches), **kwargs)
        self._check(x)
        with kept_weights(self):
            x = of_varying_lengths(x)
            return super().evaluate(x, y, batch_size, sample_weight=sample_weight, **kwargs)

    def predict(self, x, batch_size=None, **kwargs):
        """Return the outputs for strings, arrays or anything Keras takes."""
        x = as_texts(with_length(x))
        if self.is_text(x):
            x = self.preprocess(x)
        self._check(x)
        with kept_weights(self):
            return super().predict(of_varying_lengths(x), batch_size, **kwargs)

    def predict_by_length(self, texts, batch_size=None, **kwargs):
        """Predict on texts in the order of their lengths, so that little padding is computed.

        For tasks whose outputs `[n, ...]` do not depend on the length.

        Returns:
            The outputs, in the order of `texts`.
        """
        self.preprocess("")  # refuse text before any work where there is no preprocessor
        batches, order = batches_by_length(texts, self.prepare, batch_size)
        with kept_weights(self):
            outputs = super().predict(of_varying_lengths(batches), **kwargs)
        return outputs[np.argsort(order)]

    def batches(
        self, texts, labels=None, sample_weight=None, batch_size=32, shuffle=True, by_length=False
    ):
        """Return what `fit` makes of texts, for those who want to choose how.

        Args:
            texts: in any form that `fit` takes.
            labels: theirs.
            sample_weight: a weight a text.
            batch_size: texts, or windows of long ones, in a batch.
            shuffle: whether the order is another in each epoch.
            by_length: whether texts about as long as one another share a batch: less padding, and
                on JAX at most one compilation more than there are lengths of rows.

        Returns:
            `TextBatches`.

        Raises:
            ValueError: for labels or texts that `fit` would refuse.

        Example:
            >>> task.fit(task.batches(texts, labels, by_length=True), epochs=3)
        """
        texts, labels = self._text_or_tensors(texts, labels)
        if not self.is_text(texts):
            raise ValueError(f"Expected texts. Received: {type(texts).__name__}")
        found = self._text_batches(texts, labels, sample_weight, batch_size, shuffle)
        return found.by_length() if by_length else found

    def limit_length(self):
        """Let a preprocessor without any length truncate to the size of the position table."""
        preprocessor = self.preprocessor
        if getattr(preprocessor, "max_sequence_length", 0) is None:
            if preprocessor.sequence_length is None:
                preprocessor.max_sequence_length = self.backbone.max_sequence_length

    def _text_or_tensors(self, x, y):
        """Recognise texts, and check what can be told of labels before any work."""
        x = as_texts(x)
        return x, self.encode_labels(y) if self.is_text(x) or y is not None else y

    def _validation(self, x, y=None, weights=None, batch_size=None):
        """Prepare validation data as `evaluate` would."""
        x, y = self._text_or_tensors(x, y)
        if self.is_text(x):
            return self._text_batches(x, y, weights, batch_size=batch_size)
        given = (x, y, weights)
        return given[:3] if weights is not None else given[: 2 if y is not None else 1]

    def _text_batches(self, texts, labels=None, weights=None, batch_size=None, shuffle=False):
        self.preprocess("")  # refuse text before any work where there is no preprocessor
        texts = [texts] if isinstance(texts, str) else texts

        def prepare(*batch):
            *rest, epoch = batch
            return self.prepare(*rest, epoch=epoch if shuffle else None)

        return TextBatches(texts, prepare, labels, weights, batch_size or 32, shuffle)

    def _check(self, x):
        """Refuse texts in another form, and ids outside the tables, before any step is taken."""
        if is_nested_text(x) and not self.is_text(x):
            raise ValueError(
                "Expected a list of texts, or two lists in a tuple: `(firsts, seconds)`. "
                f"Received: a {type(x).__name__} of {len(x)} whose first is {str(x[0])[:60]}"
            )
        if isinstance(x, dict) and "token_ids" in x:
            check_range("token_ids", x["token_ids"], self.backbone.vocabulary_size)
            if "segment_ids" in x and self.backbone.num_segments:
                check_range("segment_ids", x["segment_ids"], self.backbone.num_segments)
            if "mask_positions" in x:
                check_range("mask_positions", x["mask_positions"], x["token_ids"].shape[1])

    def get_config(self):
        """The constructor's arguments; the preprocessor is kept by presets, not here."""
        return {
            "name": self.name,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Rebuild the task and its backbone."""
        backbone = keras.saving.deserialize_keras_object(config["backbone"], custom_objects)
        return cls(**{**config, "backbone": backbone})

    @classmethod
    def loaded_config(cls, stored, overrides, new_heads=()):
        """Constructor arguments of a task in a checkpoint, those `stored` replaced by `overrides`.

        A subclass refuses what would give a trained head another meaning.
        """
        return {**stored, **overrides}

    @classmethod
    def usual_preprocessor(cls, tokenizer, backbone, **arguments):
        """Create the preprocessor of a task that comes from a checkpoint without one."""
        limits = {"max_sequence_length": backbone.max_sequence_length, "pad_to_multiple_of": 16}
        taken = inspect.signature(cls.preprocessor_class.__init__).parameters
        known = {name: value for name, value in limits.items() if name in taken}
        if arguments.get("sequence_length") is not None:
            known = {}
        return cls.preprocessor_class(tokenizer, **{**known, **arguments})

    @classmethod
    def from_preset(cls, preset, **overrides):
        """Load a task with its weights and its preprocessor from a folder.

        Args:
            preset: the folder, as written by `save_to_preset`, or a backbone's.
            overrides: constructor arguments that replace the stored ones: of the task, its backbone
                or its preprocessor (`sequence_length=128`). `new_heads=("classifier",)` starts
                heads anew.
        """
        from keras_bert3.checkpoints import preset as presets

        return presets.load_task(preset, cls, **overrides)

    def save_to_preset(self, preset, overwrite=False, tokenizer=None):
        """Write configuration, weights and tokenizer into the folder `preset`.

        Args:
            preset: a new or empty folder.
            overwrite: replace the checkpoint that stands there.
            tokenizer: to be stored instead of the preprocessor's.
        """
        from keras_bert3.checkpoints import preset as presets

        presets.save_task(self, preset, overwrite, tokenizer)

    def export_saved_model(self, directory, pair=False, name=None):
        """Write the next version of this task for TensorFlow Serving, and return its folder.

        Arguments and errors are those of `serving.export.export_saved_model`.
        """
        from keras_bert3.serving.export import export_saved_model

        return export_saved_model(self, directory, pair, name)


def count_updates(x, batch_size=None, epochs=1, steps_per_epoch=None, initial_epoch=0, **_):
    """Count the updates that `fit` will do, or return None where nobody can know.

    Args:
        x: what is trained on.
        batch_size: rows of a batch, for arrays.
        epochs: as of `fit`.
        steps_per_epoch: as of `fit`.
        initial_epoch: as of `fit`.

    Example: `count_updates(np.zeros((100, 8)), batch_size=32, epochs=3)` is 12.
    """
    arrays = [value for value in keras.tree.flatten(x) if hasattr(value, "shape")]
    if steps_per_epoch is None and arrays:
        steps_per_epoch = -(-arrays[0].shape[0] // (batch_size or 32))
    if steps_per_epoch is None:
        try:
            steps_per_epoch = len(x)
        except TypeError:  # a generator, or a tf.data.Dataset of unknown cardinality
            return None
    return steps_per_epoch * (epochs - initial_epoch)
