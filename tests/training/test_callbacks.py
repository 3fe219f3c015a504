import keras
import numpy as np
import pytest

from keras_bert3.training.callbacks import NaNGuard, PerUpdate
from keras_bert3.training.checkpointing import Checkpoints, SaveCheckpoints


def batches(bad):
    for step in range(100):
        x = np.full((2, 3), np.nan if step == bad else 1.0, "float32")
        yield x, np.ones((2, 1), "float32")


def fit(tmp_path, bad, examples=None):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    callbacks = [NaNGuard(10, checkpoints, examples), SaveCheckpoints(checkpoints, 10)]
    data = batches(bad)
    model.fit(data, steps_per_epoch=2, epochs=4, callbacks=callbacks, verbose=0, shuffle=False)
    return checkpoints


def test_a_loss_that_is_not_finite_stops_the_run_before_it_is_saved(tmp_path):
    message = "Received: nan at step 16, batch 5 since.*The last checkpoint, of step 14, is in '"
    with pytest.raises(FloatingPointError, match=message):
        fit(tmp_path, bad=5)
    assert Checkpoints(tmp_path / "checkpoints").steps() == [12, 14]
    none = r"began, of the examples 10, 11\. There is no checkpoint before it"
    with pytest.raises(FloatingPointError, match=none):
        fit(tmp_path / "none", bad=0, examples=lambda step: [step, step + 1])


def test_finite_losses_pass(tmp_path):
    assert fit(tmp_path, bad=99).steps() == [14, 16, 18]


def test_a_callback_sees_updates_in_place_of_micro_batches():
    seen = []
    inner = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: seen.append("begin"),
        on_train_batch_end=lambda batch, logs: seen.append(batch),
        on_epoch_end=lambda epoch, logs: seen.append(sorted(logs)),
    )
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = (np.ones((2, 3), "float32"), np.ones((2, 1), "float32"))
    many = (data for _ in range(99))
    watching = [PerUpdate(inner, 3)]
    model.fit(many, steps_per_epoch=6, verbose=0, callbacks=watching, shuffle=False)
    assert seen == ["begin", 0, 1, ["loss"]]
