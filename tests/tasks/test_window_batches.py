from typing import NamedTuple

import numpy as np

from keras_bert3.tasks.window_batches import run_in_batches


class Window(NamedTuple):
    token_ids: list


class Echo:
    """Returns each row's sum, and remembers the shapes it was given."""

    def __init__(self):
        self.shapes = []

    def predict_on_batch(self, x):
        self.shapes.append(x.shape)
        return {"sum": x.sum(1)}


def pack(windows):
    rows = np.zeros((len(windows), max(len(w.token_ids) for w in windows)), int)
    for row, window in zip(rows, windows, strict=True):
        row[: len(window.token_ids)] = window.token_ids
    return rows


def test_each_window_has_its_own_result_and_shapes_are_few():
    windows = [Window([n] * (n % 7 + 1)) for n in range(11)]
    task = Echo()
    results = dict(run_in_batches(task, windows, pack, 4))
    assert {n: int(row["sum"]) for n, row in results.items()} == {
        n: n * (n % 7 + 1) for n in range(11)
    }
    assert task.shapes == [(4, 7), (4, 4), (4, 2)]


def test_a_few_windows_are_not_filled_up_to_a_whole_batch():
    for count, rows in ((1, 1), (2, 2), (3, 4), (5, 8)):
        task = Echo()
        assert len(list(run_in_batches(task, [Window([1])] * count, pack, 32))) == count
        assert task.shapes == [(rows, 1)]
    assert list(run_in_batches(Echo(), [], pack, 32)) == []
