import os
import signal
import threading

import keras
import numpy as np
import pytest

from keras_bert3.training import checkpoint_files as files
from keras_bert3.training.checkpointing import Checkpoints, SaveCheckpoints, seed_torch
from keras_bert3.training.notice import listening
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay
from tests.layer_checks import to_numpy


def model(width=4, seed=0, optimizer=None):
    """Dropout between two layers, under a schedule."""
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(width), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    made = keras.Sequential([keras.Input((3,)), *layers])
    made.compile(optimizer or BertAdam(WarmupLinearDecay(0.1, 2, 20)), "mse")
    return made


def batches(step=0):
    """Batches that depend on the step alone."""
    while True:
        rng = np.random.default_rng(step)
        yield rng.normal(size=(4, 3)).astype("float32"), np.ones((4, 1), "float32")
        step += 1


def fit(made, checkpoints, start, end, *callbacks, every=2, notice=None):
    save = SaveCheckpoints(checkpoints, start, seed=1, notice=notice)
    made.fit(
        batches(start),
        steps_per_epoch=every,
        epochs=(end - start) // every,
        callbacks=[*callbacks, save],
        verbose=0,
        shuffle=False,
    )


def values(made):
    return [to_numpy(v) for v in [*made.variables, *made.optimizer.variables]]


def assert_equal(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Eight steps without a stop: the folder of checkpoints and all that is left at the end."""
    checkpoints = Checkpoints(tmp_path_factory.mktemp("run"), keep=4)
    made = model()
    fit(made, checkpoints, 0, 8)
    return checkpoints, values(made)


@pytest.mark.parametrize("step", [2, 6])
def test_R1_R2_R3_a_run_goes_on_to_the_same_bits(uninterrupted, tmp_path, step):
    checkpoints, expected = uninterrupted
    made = model(seed=99)
    found, _ = checkpoints.restore(made, step=step)
    assert found == step and int(made.optimizer.iterations) == step
    # The schedule goes on (R2), the data too (R3), and so does dropout (R1), or bits would differ.
    fit(made, Checkpoints(tmp_path), step, 8)
    assert_equal(values(made), expected)


def test_the_score_of_each_epoch_and_the_best_are_kept(uninterrupted, tmp_path):
    checkpoints, _ = uninterrupted
    assert checkpoints.steps() == [2, 4, 6, 8]
    made, few = model(), Checkpoints(tmp_path, keep=2)
    for step, score in ((1, 3.0), (2, 1.0), (3, float("nan")), (4, 2.0), (5, 2.0)):
        few.save(made, step, score)
    assert few.best() == {"step": 2, "score": 1.0} and few.steps() == [2, 4, 5]
    with pytest.raises(ValueError, match="keep=0"):
        Checkpoints(tmp_path, keep=0)


def test_a_broken_checkpoint_is_passed_over_with_a_message(tmp_path, capsys):
    made, checkpoints = model(), Checkpoints(tmp_path)
    for step in (1, 2):
        made.trainable_variables[0].assign(np.full((3, 4), float(step)))
        path = checkpoints.save(made, step)
    (path / files.ARRAYS).write_bytes(b"torn")
    assert checkpoints.restore(made)[0] == 1
    assert float(to_numpy(made.trainable_variables[0])[0, 0]) == 1.0
    assert "A broken checkpoint is passed over. step-00000002" in capsys.readouterr().out
    (files.path_of(tmp_path, 1) / files.ARRAYS).unlink()
    with pytest.raises(ValueError, match="Expected a whole checkpoint.*2 of which.*is none"):
        checkpoints.restore(made)


@pytest.mark.parametrize(
    ("others", "taken"),  # the latest whole checkpoint of another process, round by round
    [([3], 3), ([2, 2], 2), ([2, 1, 1], 1)],
)
def test_processes_go_on_from_one_checkpoint(uninterrupted, tmp_path, others, taken):
    made, asked = model(), []

    def shared(step):
        asked.append(step)
        return [step, min(step, others[len(asked) - 1])]

    checkpoints = Checkpoints(tmp_path, shared=shared)
    for step in (1, 2, 3):
        made.trainable_variables[0].assign(np.full((3, 4), float(step)))
        checkpoints.save(made, step)
    assert checkpoints.restore(made)[0] == taken
    assert float(to_numpy(made.trainable_variables[0])[0, 0]) == taken
    assert asked == [3, *others[:-1]]


@pytest.mark.parametrize("own", [None, 2])
def test_a_checkpoint_that_a_process_does_not_see_is_no_reason_to_start_anew(tmp_path, own):
    made, checkpoints = model(), Checkpoints(tmp_path, shared=lambda step: [step, 1 - step])
    if own:
        checkpoints.save(made, own)
    before = values(made)
    with pytest.raises(ValueError, match="the same to all processes.*none"):
        checkpoints.restore(made)
    assert_equal(values(made), before)


def test_training_goes_on_while_a_checkpoint_is_written_and_errors_come_next(tmp_path, monkeypatch):
    write, go_on = files.write, threading.Event()

    def slow(*arguments):
        assert go_on.wait(30)
        return write(*arguments)

    monkeypatch.setattr(files, "write", slow)
    made, checkpoints = model(), Checkpoints(tmp_path)
    before = [value.copy() for value in made.get_weights()]
    checkpoints.save(made, 1, wait=False)
    assert not any(tmp_path.iterdir())
    for variable in made.trainable_variables:  # what the next step would change
        variable.assign(variable.value * 0.0)
    go_on.set()
    assert checkpoints.steps() == [1]
    checkpoints.restore(made)
    assert_equal(made.get_weights(), before)
    monkeypatch.setattr(files, "write", lambda *arguments: 1 / 0)
    checkpoints.save(made, 2, wait=False)
    with pytest.raises(ZeroDivisionError):
        checkpoints.wait()
    assert checkpoints.steps() == [1]


def test_without_a_checkpoint_nothing_changes(tmp_path):
    made = model()
    before = made.get_weights()
    assert Checkpoints(tmp_path).restore(made) == (0, {})
    assert_equal(made.get_weights(), before)


def test_R7_weights_alone_are_asked_for_and_the_fresh_optimiser_is_named(
    uninterrupted, tmp_path, capsys
):
    checkpoints, expected = uninterrupted
    made = model(seed=99)
    assert checkpoints.restore(made, weights_only=True)[0] == 8
    assert "the optimiser starts afresh" in capsys.readouterr().out
    assert int(made.optimizer.iterations) == 0
    assert_equal([to_numpy(v) for v in made.variables], expected[: len(made.variables)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"width": 5}, r"Expected shape \(3, 5\) for model/.*kernel.*Received: \(3, 4\)"),
        ({"optimizer": keras.optimizers.SGD(0.1)}, "Expected a checkpoint of this model and opt"),
    ],
)
def test_another_model_or_optimiser_is_refused_before_anything_changes(
    uninterrupted, other, message
):
    made = model(**other)
    before = made.get_weights()
    with pytest.raises(ValueError, match=message):
        uninterrupted[0].restore(made)
    assert_equal(made.get_weights(), before)


def test_another_backend_is_refused(tmp_path, monkeypatch):
    made, checkpoints = model(), Checkpoints(tmp_path)
    monkeypatch.setattr(keras.backend, "backend", lambda: "another")
    checkpoints.save(made, 1)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="of another; a preset carries weights"):
        checkpoints.restore(made)


def test_sigterm_saves_a_checkpoint_after_the_step_under_way(uninterrupted, tmp_path, capsys):
    class Preempt(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 2:  # the third step of an epoch of four
                os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    made, checkpoints = model(), Checkpoints(tmp_path)
    with listening() as notice:
        fit(made, checkpoints, 0, 8, Preempt(), every=4, notice=notice)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # a second one ends the process
    assert notice.arrived and checkpoints.steps() == [3]
    assert "SIGTERM: saved a checkpoint of step 3." in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before
    again = model(seed=99)
    step, _ = checkpoints.restore(again)
    fit(again, checkpoints, step, 8, every=5)
    assert_equal(values(again), uninterrupted[1])


def test_bfloat16_variables_are_kept_bit_by_bit(tmp_path):
    keras.config.set_dtype_policy("bfloat16")
    made, checkpoints = model(), Checkpoints(tmp_path)
    checkpoints.save(made, 1)
    before = values(made)
    again = model(seed=99)
    checkpoints.restore(again)
    assert_equal(values(again), before)


def test_each_step_has_a_torch_seed_of_its_own():
    if keras.backend.backend() != "torch":
        assert seed_torch(1, 2) is None
        return
    import torch

    draws = []
    for given in ((1, 2), (1, 3), (2, 2), (1, 2, 1), (1, 2)):  # seed, step, process
        seed_torch(*given)
        draws.append(float(torch.rand(())))
    assert draws[0] == draws[4] and len(set(draws)) == 4
