"""What devices compute of such a batch is compared in `test_distribution`."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.training import uneven_batches


@pytest.mark.parametrize(
    ("rows", "processes", "expected"),
    [(8, 1, True), (11, 1, False), (4, 1, False), (4, 2, True), (3, 9, True)],
)
def test_rows_are_divided_by_the_devices_of_a_process(monkeypatch, rows, processes, expected):
    place(monkeypatch, processes)
    assert uneven_batches._divides((np.zeros((rows, 2)), np.zeros(rows))) is expected


def test_processes_whose_rows_differ_are_refused_in_words(monkeypatch):
    place(monkeypatch, 2)
    with pytest.raises(ValueError, match="multiple of 4 rows in each.*Received: 6 rows"):
        uneven_batches._divides(np.zeros((6, 2)))


def place(monkeypatch, processes):
    mesh = SimpleNamespace(axis_names=["model", "data"], shape=(2, 8))
    parallel = SimpleNamespace(device_mesh=mesh, batch_dim_name="data", num_processes=processes)
    monkeypatch.setattr(keras.distribution, "distribution", lambda: parallel)
