"""Two workers are in `tests.runs.test_scaling`."""

import itertools

import keras
import numpy as np
import pytest

from keras_bert3.training import multi_worker

if keras.backend.backend() != "tensorflow":
    pytest.skip("strategies of TensorFlow", allow_module_level=True)


def test_one_device_needs_no_strategy_and_missing_ones_are_named():
    assert multi_worker.strategy(None, 1) is None and multi_worker.strategy(1, 1) is None
    with pytest.raises(ValueError, match="at most . devices, .*Received: data=64"):
        multi_worker.strategy(64, 1)


def test_no_batch_is_lost_on_the_way_into_a_data_set():
    whole = (({"x": np.full((4, 1), k, "float32")}, np.zeros(4)) for k in itertools.count())
    found = [int(x["x"][0, 0]) for x, _ in multi_worker.dataset(whole).take(3)]
    assert found == [0, 1, 2]


def test_random_numbers_are_those_of_keras_again_afterwards():
    draw = lambda: np.asarray(keras.random.normal((2,), seed=3))  # noqa: E731
    before = draw()
    with multi_worker.own_random_numbers():
        inside = draw()
    np.testing.assert_array_equal(inside, before)  # the first replica keeps its numbers
    np.testing.assert_array_equal(draw(), before)
