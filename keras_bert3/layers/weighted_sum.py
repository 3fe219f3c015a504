"""A learned mean of layers."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert3")
class WeightedSum(keras.layers.Layer):
    """One tensor of several, with weights that training finds.

        y = gamma sum_j softmax(s)_j x_j

    Peters et al. 2018 (ELMo), equation 1; Devlin et al. 2018, table 7, "weighted sum", does not
    say its formula. It starts as the mean: s = 0, gamma = 1.

    Call arguments:
        layers: a list of n tensors of one shape.

    Returns:
        A tensor of that shape, in the layer's compute dtype.
    """

    def build(self, layers_shape):
        """Create s and gamma."""
        self.scores = self.add_weight(
            shape=(len(layers_shape),), initializer="zeros", name="scores"
        )
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, layers):
        """Weigh and add."""
        shares = ops.softmax(ops.cast(self.scores, "float32"))
        total = sum(ops.cast(shares[j], x.dtype) * x for j, x in enumerate(layers))
        return ops.cast(self.scale, self.compute_dtype) * total

    def compute_output_shape(self, layers_shape):
        """That of one of them."""
        return layers_shape[0]
