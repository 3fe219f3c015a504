"""What is refused and what comes back is in `test_checkpointing`."""

import keras
import numpy as np

from keras_bert3.training.task_state import state_of, whole_value


def model():
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    made.compile("adam", "mse")
    return made


def test_names_do_not_depend_on_what_was_made_before():
    first, second = model(), model()
    paths = [[v.path for v in made.variables] for made in (first, second)]
    assert paths[0] != paths[1]
    assert list(state_of(first)) == list(state_of(second))


def test_the_optimiser_of_a_model_within_counts_once_it_is_built():
    inner = model()
    outer = keras.Sequential([keras.Input((2,)), inner])
    outer.compile("sgd", "mse")
    before = list(state_of(outer))
    inner.optimizer.build(inner.trainable_variables)
    after = state_of(outer)
    added = list(after)[len(before) :]
    assert list(after)[: len(before)] == before
    assert len(added) == len(inner.optimizer.variables)
    assert all("/optimizer/" in name for name in added)


def test_rows_to_spare_are_no_part_of_a_value():
    table = keras.Variable(np.arange(8.0).reshape(4, 2))
    table.used_rows = 3
    np.testing.assert_array_equal(whole_value(table), np.arange(6.0).reshape(3, 2))
