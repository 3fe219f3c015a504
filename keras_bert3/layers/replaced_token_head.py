"""From hidden vectors to a score for "this token was replaced"."""

import keras

from keras_bert3.layers import activations
from keras_bert3.layers.initializers import fresh


@keras.saving.register_keras_serializable(package="keras_bert3")
class ReplacedTokenHead(keras.layers.Layer):
    """Was this token put there by the generator?

        score_i = w . act(W LayerNorm(h_i + h_0) + b) + c

    The first token's vector, the whole sequence in one, is added to each, as in microsoft/DeBERTa
    `replaced_token_detection_model.py`. The probability is sigmoid(score).

    Args:
        activation: the backbone's.
        layer_norm_epsilon: 1e-7.
        kernel_initializer: for both kernels; biases start at 0.

    Call arguments:
        hidden: h, `[b, q, w]`.

    Output shape:
        scores `[b, q, 1]`, in the compute dtype.
    """

    def __init__(
        self,
        activation="gelu_erf",
        layer_norm_epsilon=1e-7,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, hidden_shape):
        """Create the normalisation and two dense layers."""
        self.norm.build(hidden_shape)
        for name, width, activation in (
            ("dense", hidden_shape[-1], self.activation),
            ("score", 1, None),
        ):
            layer = keras.layers.Dense(
                width,
                activation=activation and activations.get(activation),
                kernel_initializer=fresh(self.kernel_initializer),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build(hidden_shape)
            setattr(self, name, layer)

    def call(self, hidden):
        """Score every token."""
        return self.score(self.dense(self.norm(hidden + hidden[:, :1])))

    def compute_output_shape(self, hidden_shape):
        """`[b, q, 1]`."""
        return (*hidden_shape[:-1], 1)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
