"""Several processes are in `tests.runs.test_scaling`."""

import keras
import numpy as np
import pytest

from keras_bert3.training import replicas
from keras_bert3.training.optimizers import BertAdam
from tests.layer_checks import to_numpy


def test_look_ups_of_a_repeated_id_give_the_square_of_their_sum():
    # Keras 3.15 on TensorFlow keeps the sum of their squares: 3 instead of 9.
    model = keras.Sequential([keras.layers.Embedding(2, 1), keras.layers.Flatten()])
    model.compile(BertAdam(0.1, global_clipnorm=None, beta_2=0.0), Total())
    model.fit(np.zeros((1, 3), "int32"), np.zeros((1, 1)), verbose=0)
    np.testing.assert_allclose(to_numpy(model.optimizer._velocities[0]), [[9.0], [0.0]])
    np.testing.assert_allclose(float(model.optimizer.gradient_norm), 3.0)


class Total(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.sum(y_pred, axis=-1)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_the_end_of_data_of_unknown_length_is_no_update():
    # Keras 3.15 on TensorFlow counts one more, and decays once more, at the end of each epoch.
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(BertAdam(0.1, weight_decay=0.5), "mse")
    for _ in range(2):
        batches = ((np.ones((2, 2)), np.ones((2, 1))) for _ in range(3))
        model.fit(batches, verbose=0, shuffle=False)
    assert int(model.optimizer.iterations) == 6


def test_gradients_that_are_missing_stay_so():
    gradients = [keras.ops.ones(2), None, keras.ops.zeros(1)]
    found = replicas.whole(gradients)
    assert replicas.count() == 1 and found[1] is None
    np.testing.assert_array_equal(to_numpy(found[0]), [1.0, 1.0])


def test_messages_hold_gradients_of_one_kind_up_to_a_size(monkeypatch):
    monkeypatch.setattr(replicas, "_BUCKET", 4)
    given = [_Gradient(3), _Gradient(1), _Gradient(1), _Gradient(9), _Gradient(2, "half")]
    buckets = replicas._buckets(given)
    assert buckets == [given[:2], given[2:3], given[3:4], given[4:]]


class _Gradient:
    def __init__(self, count, dtype="float"):
        self.numel = lambda: count
        self.dtype = dtype
