import keras
import numpy as np

from keras_bert3.checkpoints.resized import copy_rows, rebuilt
from tests.checkpoints.models import masked_lm, tokenizer
from tests.layer_checks import to_numpy


def test_rows_that_fit_are_copied():
    old = {name: keras.Variable(np.arange(6.0).reshape(3, 2)) for name in ("same", "more", "less")}
    sizes = {"same": 3, "more": 5, "less": 1}
    new = {name: keras.Variable(np.full((size, 2), 9.0)) for name, size in sizes.items()}
    report = copy_rows(old, new)
    assert report.loaded == ("same", "more", "less")
    assert report.reshaped == ("more: (3, 2) -> (5, 2)", "less: (3, 2) -> (1, 2)")
    np.testing.assert_array_equal(to_numpy(new["same"]), [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(to_numpy(new["more"])[:3], [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(to_numpy(new["more"])[3:], 9)
    np.testing.assert_array_equal(to_numpy(new["less"]), [[0, 1]])


def test_a_rebuilt_task_differs_in_the_sizes_alone():
    task = masked_lm(tokenizer=tokenizer())
    other = rebuilt(task, vocabulary_size=30)
    assert other is not task and type(other) is type(task)
    assert other.preprocessor is task.preprocessor
    changed = {"vocabulary_size": 30, "name": other.backbone.name}
    assert other.backbone.get_config() == {**task.backbone.get_config(), **changed}
    assert rebuilt(task.backbone, num_segments=3).num_segments == 3
