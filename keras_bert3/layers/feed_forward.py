"""The position-wise feed-forward network."""

import keras

from keras_bert3.layers import activations
from keras_bert3.layers.initializers import fresh


@keras.saving.register_keras_serializable(package="keras_bert3")
class FeedForward(keras.layers.Layer):
    """Two dense layers at every position alike.

        FFN(x) = act(x W1 + b1) W2 + b2

    Vaswani et al. 2017, section 3.3 (equation 2), with BERT's and GPT-1's GELU for the ReLU.

    Args:
        intermediate_dim: width between the two layers (the papers: 4 times the model's width).
        activation: `gelu_tanh`, `gelu_erf` or a name Keras knows.
        kernel_initializer: for both kernels; biases start at 0.

    Call arguments:
        hidden: `[b, q, w]`.

    Output shape:
        `[b, q, w]`.
    """

    def __init__(
        self,
        intermediate_dim,
        activation="gelu_tanh",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, hidden_shape):
        """Create both layers for inputs of shape `[b, q, w]`."""
        self.intermediate = keras.layers.Dense(
            self.intermediate_dim,
            activation=activations.get(self.activation),
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="intermediate",
        )
        self.output_projection = keras.layers.Dense(
            hidden_shape[-1],
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="output_projection",
        )
        self.intermediate.build(hidden_shape)
        self.output_projection.build((*hidden_shape[:-1], self.intermediate_dim))

    def call(self, hidden):
        """Widen, activate, narrow."""
        return self.output_projection(self.intermediate(hidden))

    def compute_output_shape(self, hidden_shape):
        """The shape of `hidden`."""
        return hidden_shape

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
