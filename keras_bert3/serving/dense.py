"""Dense layers in a graph as servers run them: product, bias and activation next to each other.

Keras adds the bias to rows of three dimensions, which a server does in a pass through memory of its
own, and GELU in several more. Over rows of two dimensions TensorFlow's optimiser of graphs
(Grappler, `remapper.cc`) makes one operation of all, where oneDNN is built in.
"""

import functools
import math

import keras

from keras_bert3.layers import activations
from keras_bert3.serving.graph_library import tensorflow


def prepare(task) -> None:
    """Let the dense layers of a task that is about to be traced build such graphs.

    Args:
        task: of the TensorFlow backend, for nothing but to be traced.
    """
    for layer in task._flatten_layers():
        if type(layer) is keras.layers.Dense:
            layer.call = functools.partial(_call, layer)


def _call(layer, inputs, training=None):
    """act(x W + b), `[..., n]` -> `[..., m]`."""
    tf = tensorflow()

    kernel = tf.convert_to_tensor(layer.kernel)
    rows = tf.matmul(tf.reshape(inputs, [-1, kernel.shape[0]]), kernel)
    if layer.bias is not None:
        rows = tf.nn.bias_add(rows, tf.convert_to_tensor(layer.bias))
    if layer.activation is activations.gelu_erf:
        rows = _gelu_erf(rows)
    elif layer.activation is not None:
        rows = layer.activation(rows)
    return tf.reshape(rows, tf.concat([tf.shape(inputs)[:-1], kernel.shape[1:]], 0))


def _gelu_erf(x):
    """See `activations.gelu_erf`; TensorFlow's own uses Erfc, which few other runtimes know."""
    tf = tensorflow()

    return ((tf.math.erf(x * math.sqrt(0.5)) + 1.0) * 0.5) * x
