from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.runs.kept_presets import KeepPresets, kept_presets
from keras_bert3.runs.pretraining import check


class Model(keras.Sequential):
    """Stands for a task: notes the sum of its weights."""

    def save_to_preset(self, folder, overwrite=False):
        folder.mkdir(parents=True, exist_ok=overwrite)
        total = sum(float(np.sum(weight)) for weight in self.get_weights())
        (folder / "sum").write_text(str(total))


def test_steps_are_counted_over_calls_of_fit(tmp_path):
    model = Model([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y, totals = np.ones((2, 2)), np.ones((2, 1)), {}

    def fit(first_step, epochs):
        options = {"batch_size": 1, "epochs": epochs, "verbose": 0}
        model.fit(x, y, callbacks=[KeepPresets(tmp_path, 4, first_step)], **options)
        return str(sum(float(np.sum(weight)) for weight in model.get_weights()))

    totals[4] = fit(0, 2)
    fit(4, 1)
    totals[8] = fit(6, 1)
    assert list(kept_presets(tmp_path)) == [0, 4, 8]
    for step, total in totals.items():
        assert (tmp_path / "presets" / f"step-{step:08d}" / "sum").read_text() == total
    fit(6, 1)  # again, as after a restart
    assert list(kept_presets(tmp_path)) == [0, 4, 8]


def test_the_finished_model_is_the_last(tmp_path):
    with pytest.raises(ValueError, match="pretraining run with presets. Received: "):
        kept_presets(tmp_path)
    (tmp_path / "preset").mkdir()
    (tmp_path / "presets" / "step-00000010").mkdir(parents=True)
    (tmp_path / "config.json").write_text('{"steps": 10}')
    assert kept_presets(tmp_path) == {10: str(tmp_path / "preset")}


def test_presets_are_kept_where_epochs_end():
    numbers = {"steps": 9, "batch_size": 1, "log_every": 4, "warmup_steps": 0}
    numbers |= {"long_batch_size": 1, "num_duplicates": 1, "weight_decay": 0.0}
    numbers |= {"sequence_length": 5, "long_sequence_length": 5, "learning_rate": 0.1}
    shares = {"long_fraction": 0.0, "held_out": 0.1, "dropout": 0.0, "dtype_policy": "float32"}
    for every in (0, 6):
        with pytest.raises(ValueError, match=f"multiple of log_every=4. .*presets_every={every}"):
            check(SimpleNamespace(**numbers, **shares, presets_every=every))
