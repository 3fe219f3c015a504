"""Texts as vectors: for search, clustering, and models that take features."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert3.layers.last_token import last_token
from keras_bert3.tasks.preprocessor import as_texts
from keras_bert3.tasks.task import Task
from keras_bert3.tasks.text_batches import batches_by_length

COMBINATIONS = ("concatenate", "mean")


def mean_of_tokens(hidden, padding_mask):
    """The mean of the real tokens' vectors, special tokens included; 0 where there is none.

    Args:
        hidden: `[b, q, w]`.
        padding_mask: `[b, q]`, nonzero for real tokens.

    Returns:
        `[b, w]`.
    """
    weights = ops.cast(ops.not_equal(ops.cast(padding_mask, "int32"), 0), hidden.dtype)
    count = ops.maximum(ops.sum(weights, axis=1), 1.0)
    return ops.matmul(weights[:, None], hidden)[:, 0] / count[:, None]


POOLINGS = {
    "mean": mean_of_tokens,
    "cls": lambda hidden, padding_mask: hidden[:, 0],
    "last": last_token,
}


@keras.saving.register_keras_serializable(package="keras_bert3")
class TextEmbedder(Task):
    """Turn texts into vectors, without training anything.

        e = pool_t(combine(h_{l_1}[t], ..., h_{l_n}[t])),  then, on request,  e / |e|

    With `layers=(-4, -3, -2, -1)` and `pooling=None` these are the features of Devlin et al. 2018,
    section 5.3 and table 7: the last four layers concatenated, a vector a token. With the mean of
    the last layer's tokens, as sentence encoders such as all-MiniLM-L6-v2 are trained (Reimers &
    Gurevych 2019), texts are compared by the cosine of their vectors.

    Args:
        backbone: any `Backbone`.
        preprocessor: see `Task`.
        pooling: `mean` (of real tokens), `cls` (the first token), `last` (the last real token), or
            None for a vector a token.
        layers: numbers of layers, 0 being the embeddings, L or -1 the last block; the last block
            alone when None.
        combine: `concatenate` or `mean`, of several layers.
        normalize: whether vectors have length 1.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 `[b, w]`, or `[b, q, w]` without pooling; w is the backbone's width, times the
        number of layers that are concatenated. `predict` on texts returns an array `[n, w]`, or
        without pooling a list of n arrays `[tokens, w]`.

    Raises:
        ValueError: for a pooling, combination or layer that there is not.

    Example:
        >>> embedder = TextEmbedder.from_preset("all-MiniLM-L6-v2", normalize=True)
        >>> a, b = embedder.predict(["A man is riding a horse.", "Someone rides."])
        >>> similarity = a @ b
    """

    def __init__(
        self,
        backbone,
        preprocessor=None,
        pooling: str | None = "mean",
        layers: Sequence[int] | None = None,
        combine: str = "concatenate",
        normalize: bool = False,
        **kwargs,
    ):
        super().__init__(backbone, preprocessor, **kwargs)
        self.limit_length()
        if pooling is not None and pooling not in POOLINGS:
            raise ValueError(
                f"Expected a pooling among {sorted(POOLINGS)} or None. Received: {pooling!r}"
            )
        if combine not in COMBINATIONS:
            raise ValueError(f"Expected combine among {COMBINATIONS}. Received: {combine!r}")
        count = backbone.num_layers + 1
        outside = [layer for layer in layers or () if not -count <= layer < count]
        if outside or (layers is not None and not len(layers)):
            raise ValueError(
                f"Expected layers from 0 (the embeddings) to {count - 1}, or from the end. "
                f"Received: layers={layers!r}"
            )
        self.pooling = pooling
        self.layer_numbers = None if layers is None else [int(layer) for layer in layers]
        self.combine = combine
        self.normalize = normalize

    def call(self, inputs, training=None):
        """Embed a batch."""
        hidden = self._hidden(inputs, training)
        if self.pooling is not None:
            hidden = POOLINGS[self.pooling](hidden, inputs["padding_mask"])
        if not self.normalize:
            return hidden
        length = ops.sqrt(ops.sum(ops.square(hidden), axis=-1, keepdims=True))
        return hidden / ops.maximum(length, 1e-12)

    def _hidden(self, inputs, training):
        """The chosen layers in one: float32 `[b, q, w]`."""
        if self.layer_numbers is None:
            outputs = self.backbone(inputs, training=training)
            return ops.cast(outputs["sequence_output"], "float32")
        every_layer = self.backbone(inputs, layer_outputs=True, training=training)["layer_outputs"]
        chosen = [ops.cast(every_layer[layer], "float32") for layer in self.layer_numbers]
        if self.combine == "concatenate":
            return ops.concatenate(chosen, axis=-1)
        return sum(chosen[1:], chosen[0]) / len(chosen)

    @property
    def output_dim(self) -> int:
        """Numbers in a vector."""
        count = len(self.layer_numbers or [-1]) if self.combine == "concatenate" else 1
        return count * self.backbone.hidden_dim

    def compute_output_spec(self, inputs, training=None):
        """Declare the vectors of symbolic inputs."""
        shape = inputs["token_ids"].shape
        shape = shape if self.pooling is None else shape[:1]
        return keras.KerasTensor((*shape, self.output_dim), "float32")

    def default_compile(self):
        """The paper's optimiser, for those who bring a loss."""
        return {"optimizer": self.backbone.fine_tuning.make()}

    def prepare(self, texts, labels, weights, indices, epoch):
        """Pack a batch of texts."""
        return self.preprocess(texts), labels, weights

    def predict(self, x, batch_size=None, **kwargs):
        """Return the vectors of strings, arrays or anything Keras takes.

        Texts are run in the order of their lengths and returned in their own.
        """
        x = as_texts(x)
        if not self.is_text(x):
            return super().predict(x, batch_size, **kwargs)
        if self.pooling is not None:
            return self.predict_by_length(x, batch_size, **kwargs)
        self.preprocess("")
        batches, order = batches_by_length(x, self.prepare, batch_size)
        found = [None] * len(order)
        for number in range(len(batches)):
            inputs = batches[number][0]
            places = order[number * batches.batch_size :]
            for place, row, mask in zip(
                places, self.predict_on_batch(inputs), inputs["padding_mask"], strict=False
            ):
                found[place] = np.asarray(row)[mask]
        return found

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "pooling": self.pooling,
            "layers": self.layer_numbers,
            "combine": self.combine,
            "normalize": self.normalize,
        }
