"""DeBERTa's summary of a sequence."""

import keras

from keras_bert3.layers import activations
from keras_bert3.layers.initializers import fresh


@keras.saving.register_keras_serializable(package="keras_bert3")
class ContextPooler(keras.layers.Layer):
    """act(W Dropout(h[CLS]) + b), as in microsoft/DeBERTa `pooling.py`.

    Pretraining has no use for it: it starts anew in every fine-tuning, with the classifier on it.

    Args:
        activation: `gelu_erf`.
        dropout: 0.0 in the released configurations.
        kernel_initializer: for the kernel; the bias starts at 0.

    Call arguments:
        hidden: `[b, q, w]`.
        training: whether dropout is on.

    Output shape:
        `[b, w]`.
    """

    def __init__(
        self, activation="gelu_erf", dropout=0.0, kernel_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        self.activation = activation
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, hidden_shape):
        """Create the dense layer."""
        self.dense = keras.layers.Dense(
            hidden_shape[-1],
            activation=activations.get(self.activation),
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((hidden_shape[0], hidden_shape[-1]))

    def call(self, hidden, training=None):
        """Summarise a batch."""
        return self.dense(self.dropout(hidden[:, 0], training=training))

    def compute_output_shape(self, hidden_shape):
        """`[b, w]`."""
        return hidden_shape[0], hidden_shape[-1]

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "activation": self.activation,
            "dropout": self.dropout.rate,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
