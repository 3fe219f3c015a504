import keras
import numpy as np
from keras import ops

from keras_bert3.training.gradients import gradient
from tests.layer_checks import to_numpy


def test_gradient_of_a_function_of_one_tensor():
    at = np.array([[1.0, -2.0], [0.5, 3.0]], "float32")
    found = gradient(lambda x: ops.sum(x * x * x), ops.convert_to_tensor(at))
    np.testing.assert_allclose(to_numpy(found), 3 * at**2, rtol=1e-6)


def test_weights_take_no_part_and_random_states_go_on():
    layer, dropout = keras.layers.Dense(3), keras.layers.Dropout(0.5, seed=1)
    layer.build((None, 2))
    at, states = ops.ones((4, 2)), dropout.non_trainable_variables
    before = to_numpy(states[0])
    variables = [*layer.variables, *states]
    found = gradient(lambda x: ops.sum(dropout(layer(x), training=True)), at, variables)
    kernel = to_numpy(layer.kernel)
    ratio = np.linalg.lstsq(kernel, to_numpy(found).T, rcond=None)[0]
    np.testing.assert_allclose(kernel @ ratio, to_numpy(found).T, atol=1e-5)
    assert (to_numpy(states[0]) != before).any()
    # a value, not a remainder of the trace it was made in
    assert to_numpy(dropout(ops.ones((2, 2)), training=True)).shape == (2, 2)
