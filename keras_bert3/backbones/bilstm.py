"""A bidirectional LSTM on top of another backbone: two experiments of BERT's paper."""

from typing import Any

import keras
from keras import ops

from keras_bert3.backbones.backbone import Backbone
from keras_bert3.layers.last_token import last_token
from keras_bert3.layers.weighted_sum import WeightedSum

COMBINATIONS = ("concatenate", "weighted_sum")
_OF_USE = ("name", "trainable", "dtype")


@keras.saving.register_keras_serializable(package="keras_bert3")
class BiLSTMBackbone(Backbone):
    """Long short-term memory that reads an encoder's vectors in both directions.

        x = h_L                                       or  x = combine(h_{l_1}, ..., h_{l_n})
        forward_t = LSTM(x_t, forward_{t-1}),  backward_t = LSTM(x_t, backward_{t+1})
        sequence_output_t = [forward_t ; backward_t]

    | Devlin et al. 2018             | encoder                  | here                          |
    |--------------------------------|--------------------------|-------------------------------|
    | table 5, "+ BiLSTM"            | trained, left to right   | `BiLSTMBackbone(encoder)`     |
    | table 7, feature-based (5.3)   | as pretrained, never     | `layers`, `combine`,          |
    |                                | trained, without dropout | `num_lstm_layers=2`           |

    A classifier reads the forward state of the last real token beside the backward state of the
    first: both have seen the whole row. Padding leaves the states as they are.

    Args:
        encoder: any backbone of layers, or what `get_config` made of it.
        num_lstm_layers: one upon the other (1).
        lstm_dim: units of each direction; half the encoder's width when None. (The paper says "768-
            dimensional" of an encoder of 768.)
        layers: numbers of the encoder's layers to read, 0 the embeddings, -1 the last; the encoder
            is then frozen. None: its output, and it is trained.
        combine: `concatenate` or `weighted_sum`, of several layers.

    Call arguments and outputs: see `Backbone`; `layer_outputs` are what the LSTM reads, then the
    output of each of its layers, all of which have the width of the output but the first.

    Raises:
        ValueError: for a combination or layer that there is not.

    Example:
        >>> features = BiLSTMBackbone(encoder, 2, layers=(-4, -3, -2, -1))
        >>> task = TokenClassifier(features, preprocessor=preprocessor, labels=labels)
    """

    def __init__(
        self,
        encoder,
        num_lstm_layers=1,
        lstm_dim=None,
        layers=None,
        combine="concatenate",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        encoder = restored(encoder) if isinstance(encoder, dict) else encoder
        self.encoder = encoder
        self.num_layers = self.num_lstm_layers = num_lstm_layers
        self.lstm_dim = encoder.hidden_dim // 2 if lstm_dim is None else lstm_dim
        self.hidden_dim = 2 * self.lstm_dim
        self.layer_numbers = None if layers is None else [int(number) for number in layers]
        self.combine = combine
        self._check()
        if layers is not None:
            encoder.trainable = False
        elif encoder.has_pooler:
            encoder.pooler.trainable = False
        if combine == "weighted_sum":
            self.weighted_sum = WeightedSum(dtype=self.dtype_policy, name="weighted_sum")
        self.lstm = [self._lstm(f"lstm_{i}") for i in range(num_lstm_layers)]
        self.build()

    def _check(self):
        if self.combine not in COMBINATIONS:
            raise ValueError(f"Expected combine among {COMBINATIONS}. Received: {self.combine!r}")
        count = self.encoder.num_layers + 1
        numbers = self.layer_numbers
        if numbers == [] or any(not -count <= number < count for number in numbers or ()):
            raise ValueError(
                f"Expected layers from 0 (the embeddings) to {count - 1}, or from the end. "
                f"Received: layers={numbers}"
            )
        if self.num_lstm_layers < 1:
            raise ValueError(f"Expected num_lstm_layers >= 1. Received: {self.num_lstm_layers}")

    def _lstm(self, name):
        lstm = keras.layers.LSTM(self.lstm_dim, return_sequences=True, dtype=self.dtype_policy)
        return keras.layers.Bidirectional(lstm, dtype=self.dtype_policy, name=name)

    def build(self, inputs_shape=None):
        """Create every weight."""
        width, count = self.encoder.hidden_dim, len(self.layer_numbers or [-1])
        if self.combine == "weighted_sum":
            self.weighted_sum.build([(None, None, width)] * count)
        else:
            width *= count
        for lstm in self.lstm:
            lstm.build((None, None, width))
            width = self.hidden_dim

    def call(self, inputs, layer_outputs=False, training=None):
        """Run both networks on a batch."""
        hidden = self._read(inputs, training)
        real = ops.not_equal(ops.cast(inputs["padding_mask"], "int32"), 0)
        every_layer = [hidden]
        for lstm in self.lstm:
            hidden = lstm(hidden, mask=real, training=training)
            every_layer.append(hidden)
        outputs = {"sequence_output": hidden}
        return {**outputs, "layer_outputs": every_layer} if layer_outputs else outputs

    def _read(self, inputs, training):
        """What the LSTM reads: `[b, q, w]`."""
        if self.layer_numbers is None:
            return self.encoder(inputs, training=training)["sequence_output"]
        every_layer = self.encoder(inputs, layer_outputs=True, training=False)["layer_outputs"]
        chosen = [every_layer[number] for number in self.layer_numbers]
        if self.combine == "weighted_sum":
            return self.weighted_sum(chosen)
        return ops.concatenate(chosen, axis=-1)

    def pool(self, outputs, inputs, pooler=None, training=None):
        """The last forward state beside the first backward one: `[b, w]`."""
        hidden = outputs["sequence_output"]
        forward = last_token(hidden, inputs["padding_mask"])[:, : self.lstm_dim]
        return ops.concatenate([forward, hidden[:, 0, self.lstm_dim :]], axis=-1)

    def initializer(self):
        """What heads start from."""
        return self.encoder.initializer()

    def get_config(self):
        """The constructor's arguments; the encoder as its class and theirs."""
        config = {k: v for k, v in self.encoder.get_config().items() if k not in _OF_USE}
        return {
            **super().get_config(),
            "encoder": {"class": type(self.encoder).__name__, "config": config},
            "num_lstm_layers": self.num_lstm_layers,
            "lstm_dim": self.lstm_dim,
            "layers": self.layer_numbers,
            "combine": self.combine,
        }


def _of_encoder(name: str) -> Any:
    return property(lambda self: getattr(self.encoder, name), doc=f"The encoder's `{name}`.")


for _name in (
    "vocabulary_size",
    "max_sequence_length",
    "num_segments",
    "dropout",
    "fine_tuning",
    "embeddings",
    "blocks",
    "token_embeddings",
):
    setattr(BiLSTMBackbone, _name, _of_encoder(_name))


def restored(stored: dict[str, Any]) -> Backbone:
    """Build the encoder that `get_config` described; none but the package's own classes."""
    import keras_bert3

    name = stored["class"]
    found = getattr(keras_bert3, name) if name in keras_bert3.__all__ else None
    if not isinstance(found, type) or not issubclass(found, Backbone):
        raise ValueError(f"Expected the name of a backbone of keras_bert3. Received: {name!r}")
    return found(**stored["config"])
