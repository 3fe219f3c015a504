import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.runs.kept_presets import kept_presets
from keras_bert3.runs.training import describe_decay, stretches, train
from keras_bert3.training.checkpointing import Checkpoints
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay
from keras_bert3.training.torch_products import use_onednn
from tests.layer_checks import to_numpy

CONFIG = SimpleNamespace(log_every=4, seed=1)
ROOT = Path(__file__).parents[2]


class Batches:
    """Batches that depend on the step alone."""

    batch_size = 4

    def __init__(self, seed, pause=0.0, sigterm_at=None):
        self.seed = seed
        self.pause = pause
        self.sigterm_at = sigterm_at

    def forever(self, step=0):
        while True:
            time.sleep(self.pause)
            if step == self.sigterm_at:
                os.kill(os.getpid(), signal.SIGTERM)
            rng = np.random.default_rng((self.seed, step))
            yield rng.normal(size=(4, 3)).astype("float32"), np.ones((4, 1), "float32")
            step += 1


def make_phases(**arguments):
    return [
        SimpleNamespace(sequence_length=3, steps=steps, training=Batches(steps, **arguments))
        for steps in (10, 6)
    ]


class Task(keras.Sequential):
    """Stands for a task: leaves a folder in place of a preset."""

    def save_to_preset(self, folder, overwrite=False):
        folder.mkdir(parents=True, exist_ok=overwrite)


def make_task(seed=0):
    keras.utils.set_random_seed(seed)
    use_onednn()  # as any backbone would have it: the processes of a test compute the same bits
    layers = [keras.layers.Dense(4), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    task = Task([keras.Input((3,)), *layers])
    task.compile(BertAdam(WarmupLinearDecay(0.1, 2, 20)), "mse")
    return task


def values(task):
    return [to_numpy(v) for v in [*task.variables, *task.optimizer.variables]]


def assert_equal(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one, other)


def logged_steps(folder):
    _, *rows = (folder / "metrics.csv").read_text().splitlines()
    return [int(row.split(",")[0]) for row in rows]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder, task = tmp_path_factory.mktemp("run"), make_task()
    train(folder, SimpleNamespace(**vars(CONFIG), presets_every=4), task, make_phases())
    # Both phases keep to one grid of steps, though the first ends beside it.
    assert logged_steps(folder) == [4, 8, 10, 12, 16]
    assert list(kept_presets(folder)) == [0, 4, 8, 12, 16]
    return folder, values(task)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 25, [(0, 10, 2), (20, 5, 1)]),
        (3, 25, [(3, 7, 1), (10, 10, 1), (20, 5, 1)]),
        (23, 25, [(23, 2, 1)]),
        (10, 20, [(10, 10, 1)]),
        (3, 5, [(3, 2, 1)]),
        (5, 5, []),
    ],
)
def test_epochs_end_where_they_would_have_without_a_stop(start, end, expected):
    assert list(stretches(start, end, 10)) == expected


@pytest.mark.parametrize("step", [10, 12, 16])
def test_training_goes_on_from_any_checkpoint(uninterrupted, tmp_path, step, capsys):
    folder, expected = uninterrupted
    source = Checkpoints(folder / "checkpoints", keep=9)
    task = make_task(seed=5)
    source.restore(task, step=step)
    Checkpoints(tmp_path / "checkpoints").save(task, step)
    header, *rows = (folder / "metrics.csv").read_text().splitlines()
    # The process before wrote a row after its last checkpoint, and another in part.
    (tmp_path / "metrics.csv").write_text("\n".join([header, *rows[:4]]) + "\n13,0.")
    again = make_task(seed=6)
    train(tmp_path, CONFIG, again, make_phases())
    assert f"Going on after step {step}" in capsys.readouterr().out
    assert_equal(values(again), expected)
    assert logged_steps(tmp_path) == ([4, 8, 10, 12, 16] if step < 16 else [4, 8, 10, 12])


def test_a_finished_training_takes_no_further_step(uninterrupted):
    folder, expected = uninterrupted
    task = make_task(seed=5)
    train(folder, CONFIG, task, make_phases())
    assert_equal(values(task), expected)


PROGRAM = """
from pathlib import Path
from tests.runs import test_training as t
t.train(Path({folder!r}), t.CONFIG, t.make_task(), t.make_phases(pause=0.1))
"""


def test_sigkill_leaves_what_another_process_goes_on_from(uninterrupted, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))]
    child = subprocess.Popen(
        program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    while child.poll() is None and not checkpoints.steps():
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.2))
    child.kill()
    _, errors = child.communicate()
    assert child.returncode == -signal.SIGKILL and checkpoints.steps(), errors.decode()[-2000:]
    task = make_task(seed=5)
    train(tmp_path, CONFIG, task, make_phases())
    assert_equal(values(task), uninterrupted[1])


def test_sigterm_ends_a_run_by_its_exit_code_and_nothing_is_lost(uninterrupted, tmp_path):
    with pytest.raises(SystemExit, match="143"):
        train(tmp_path, CONFIG, make_task(), make_phases(sigterm_at=5))
    # Keras reads ahead, by how much depends on the backend: so the step is not known here.
    assert 0 < Checkpoints(tmp_path / "checkpoints").steps()[-1] < 16
    task = make_task(seed=5)
    train(tmp_path, CONFIG, task, make_phases())
    assert_equal(values(task), uninterrupted[1])


def test_both_groups_of_weight_decay_are_said():
    expected = "Weight decay 0.01: 2 variables (kernel), not 2 (bias)"
    assert describe_decay(make_task()) == expected
