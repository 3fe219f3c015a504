"""BERT's summary of a sequence."""

import keras

from keras_bert3.layers.initializers import fresh


@keras.saving.register_keras_serializable(package="keras_bert3")
class Pooler(keras.layers.Layer):
    """tanh(W h[CLS] + b): the final vector of the first token, transformed.

    Devlin et al. 2018, section 3.1 (task 2) reads the next-sentence prediction from it.

    Args:
        kernel_initializer: for the kernel; the bias starts at 0.

    Call arguments:
        hidden: `[b, q, w]`.

    Output shape:
        `[b, w]`.
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, hidden_shape):
        """Create the dense layer."""
        self.dense = keras.layers.Dense(
            hidden_shape[-1],
            activation="tanh",
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((hidden_shape[0], hidden_shape[-1]))

    def call(self, hidden):
        """Summarise a batch."""
        return self.dense(hidden[:, 0])

    def compute_output_shape(self, hidden_shape):
        """`[b, w]`."""
        return hidden_shape[0], hidden_shape[-1]

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
