import csv
import sys

import numpy as np
import pytest

from keras_bert3.runs.run_log import RunLog, keep_rows
from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.training import flops
from tests.tasks import toy


def fit(folder, epochs=2, first_step=0):
    task = MaskedLM(toy.backbone())
    task.compile()
    log = RunLog(folder, 48, first_step, learning_rate=lambda s: s / 100, flops_per_token=5e11)
    batches = (toy.batch(seed=i) for i in range(1000))
    return task.fit(batches, steps_per_epoch=3, epochs=epochs, callbacks=[log], verbose=0).history


def test_every_epoch_is_a_row_and_an_event(tmp_path, monkeypatch):
    monkeypatch.setattr(flops, "device_name", lambda: "Tesla T4")
    others = fit(tmp_path)  # what callbacks after it see
    assert others["learning_rate"] == [0.02, 0.05] and min(others["gradient_norm"]) > 0
    fit(tmp_path, epochs=1, first_step=6)
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["3", "6", "9"]
    assert [float(row["learning_rate"]) for row in rows] == [0.02, 0.05, 0.08]
    assert all(float(row["tokens_per_second"]) > 0 for row in rows)
    for row in rows:
        operations = 5e11 * float(row["tokens_per_second"])
        assert float(row["model_teraflops"]) == pytest.approx(operations / 1e12)
        share = float(row["model_flops_utilisation"])
        assert share == pytest.approx(operations / 65e12)
    assert all(np.isfinite(float(row["masked_lm_loss"])) for row in rows)
    assert len(list((tmp_path / "tensorboard").glob("events.out.tfevents.*"))) == 2


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(ImportError, match=r"keras-bert3\[recipes\]"):
        fit(tmp_path)


def test_a_run_that_goes_on_drops_the_rows_it_will_write_again(tmp_path):
    keep_rows(tmp_path, 5)
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\r\n2,0.5\r\n4,0.25\r\n6,0.125\r\n8,0.1")
    keep_rows(tmp_path, 7)
    assert path.read_text() == "step,loss\n2,0.5\n4,0.25\n6,0.125\n"
    keep_rows(tmp_path, 5)
    assert path.read_text() == "step,loss\n2,0.5\n4,0.25\n"
    RunLog(tmp_path, 1)._append({"step": 6, "loss": 0.125, "newer_than_the_run": 1.0})
    assert path.read_text().splitlines()[-1] == "6,0.125"
    keep_rows(tmp_path, 0)
    assert not path.exists()
