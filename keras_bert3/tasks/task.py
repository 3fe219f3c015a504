"""A backbone with a head: the base of everything that is trained."""

from typing import Any

import keras

from keras_bert3.backbones.backbone import check_range
from keras_bert3.tasks.preprocessor import Preprocessor, is_pair, is_text
from keras_bert3.tasks.text_batches import TextBatches


class Task(keras.Model):
    """A `keras.Model` that takes strings or tensors.

    A subclass builds its heads in its constructor, names them in `head_names`, implements `call`
    and `prepare` (strings to arrays), and gives the paper's defaults in `default_compile`.

    Args:
        backbone: a `Backbone`.
        preprocessor: turns strings into tensors; None for those who bring tensors.
    """

    head_names: tuple[str, ...] = ()
    preprocessor_class: type[Preprocessor] = Preprocessor

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

    def compile(self, optimizer=None, loss=None, **kwargs):
        """Configure training; what is left out takes the paper's value."""
        defaults = self.default_compile()
        if loss is not None:  # metrics belong to the outputs that a loss looks at
            defaults.pop("weighted_metrics", None)
        chosen = {"optimizer": optimizer, "loss": loss, **kwargs}
        given = {name: value for name, value in chosen.items() if value is not None}
        super().compile(**{**defaults, **given})

    def prepare(self, texts, labels, weights, indices, epoch):
        """Turn a batch of strings into `(x, y, sample_weight)`; see `TextBatches`.

        `epoch` is None outside training.
        """
        raise NotImplementedError

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
        """Train on strings, arrays or anything `keras.Model.fit` takes."""
        if not self.compiled:
            self.compile()
        validation = kwargs.get("validation_data")
        if isinstance(validation, tuple) and is_text(validation[0]):
            kwargs["validation_data"] = self._text_batches(*validation, batch_size=batch_size)
        if is_text(x):
            x = self._text_batches(x, y, sample_weight, batch_size=batch_size, shuffle=shuffle)
            return super().fit(x, shuffle=False, **kwargs)
        self._check_ids(x)
        shuffle = shuffle and not hasattr(x, "__next__")  # a generator has an order of its own
        return super().fit(x, y, batch_size, shuffle=shuffle, sample_weight=sample_weight, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Return the loss and metrics on strings, arrays or anything Keras takes."""
        if not self.compiled:
            self.compile()
        if is_text(x):
            batches = self._text_batches(x, y, sample_weight, batch_size=batch_size)
            return super().evaluate(batches, **kwargs)
        self._check_ids(x)
        return super().evaluate(x, y, batch_size, sample_weight=sample_weight, **kwargs)

    def predict(self, x, batch_size=None, **kwargs):
        """Return the outputs for strings, arrays or anything Keras takes."""
        if is_text(x):
            x = self.preprocess(x)
        self._check_ids(x)
        return super().predict(x, batch_size, **kwargs)

    def _text_batches(self, texts, labels=None, weights=None, batch_size=None, shuffle=False):
        self.preprocess("")  # refuse text before any work where there is no preprocessor
        texts = [texts] if isinstance(texts, str) else texts

        def prepare(*batch):
            *rest, epoch = batch
            return self.prepare(*rest, epoch=epoch if shuffle else None)

        return TextBatches(texts, prepare, labels, weights, batch_size or 32, shuffle)

    def _check_ids(self, x):
        """Refuse ids outside the tables before any step is taken."""
        if isinstance(x, dict) and "token_ids" in x:
            check_range("token_ids", x["token_ids"], self.backbone.vocabulary_size)
            if "segment_ids" in x and self.backbone.num_segments:
                check_range("segment_ids", x["segment_ids"], self.backbone.num_segments)

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
    def from_preset(cls, preset, **overrides):
        """Load a task with its weights and its preprocessor from a folder.

        Args:
            preset: the folder, as written by `save_to_preset`, or a backbone's.
            overrides: constructor arguments that replace the stored ones.
        """
        from keras_bert3.checkpoints import preset as presets

        return presets.load_task(preset, cls, **overrides)

    def save_to_preset(self, preset):
        """Write configuration, weights and tokenizer into the folder `preset`."""
        from keras_bert3.checkpoints import preset as presets

        presets.save_task(self, preset)
