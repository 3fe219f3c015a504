import csv
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.runs import scaling
from keras_bert3.runs.training import train
from keras_bert3.training.checkpointing import Checkpoints
from tests.runs import pair

ROOT = Path(__file__).parents[2]
BACKEND = keras.backend.backend()


OF_THE_CLOCK = {"tokens_per_second", "model_teraflops"}


def metrics(folder):
    """The first rows of what a run logs, by name."""
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))[: pair.STEPS]
    return {name: [float(row[name]) for row in rows] for name in rows[0].keys() - OF_THE_CLOCK}


def surroundings(folder, index, ports):
    """How a process finds the other, on each backend."""
    both = [f"127.0.0.1:{port}" for port in ports]
    task = {"type": "worker", "index": index}
    found = {
        "jax": {
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": ",".join(both),
            "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
            "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
            "PAIR_SETTINGS": json.dumps({"mesh": "data=4,model=2"}),
            "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4",
        },
        "torch": {
            "WORLD_SIZE": "2",
            "RANK": str(index),
            "LOCAL_RANK": str(index),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(ports[0]),
            "PAIR_SETTINGS": json.dumps({"accumulate": 2}),
        },
        "tensorflow": {"TF_CONFIG": json.dumps({"cluster": {"worker": both}, "task": task})},
    }[BACKEND]
    return {**os.environ, "PYTHONPATH": str(ROOT), "PAIR_FOLDER": str(folder), **found}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two processes, one of them lost: folder, exit code, last words, seconds, values of each."""
    folder = tmp_path_factory.mktemp("two")
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in free]
    for one in free:
        one.close()
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.runs.pair"],
            env=surroundings(folder, index, ports),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    lost = children[1].communicate(timeout=300)[1]
    since = time.time()
    noticed = children[0].communicate(timeout=120)[1]
    codes = [child.returncode for child in children]
    assert codes[1] == -9, lost[-2000:] + noticed[-2000:]
    each = []
    for index in range(2):
        with np.load(folder / f"process-{index}.npz") as found:
            each.append(dict(found))
    return folder, codes[0], noticed, time.time() - since, each


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    scale, config, task = pair.start(folder)
    train(folder, config, task, [pair.phase(pair.STEPS)], scale)
    return folder, task, pair.values(task)


def values_of(found):
    return [value for name, value in sorted(found.items()) if name.startswith("value")]


def test_D1_D3_two_processes_give_the_metrics_and_the_weights_of_one(two, alone):
    found, expected = metrics(two[0]), metrics(alone[0])
    assert found.keys() == expected.keys() >= {"loss", "masked_lm_accuracy", "gradient_norm"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, err_msg=name)
    # On PyTorch batches have parts here, for which an optimiser has more variables.
    count = len(alone[1].variables) if BACKEND == "torch" else len(alone[2])
    for process in two[4]:
        for one, other in zip(values_of(process)[:count], alone[2][:count], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_each_process_knows_a_number_of_all(two):
    for process in two[4]:
        assert list(process["gathered"]) == [-1, 2**40 - 1]


@pytest.mark.skipif(BACKEND == "torch", reason="gradients of parts are kept by one of them alone")
def test_R6_one_process_goes_on_from_what_two_have_written(two, alone):
    _, task, before = alone
    assert Checkpoints(two[0] / "kept").restore(task)[0] == pair.STEPS
    for one, other in zip(pair.values(task), values_of(two[4][0]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(before) == len(values_of(two[4][0]))


def test_both_stop_after_the_same_step_where_one_is_told_to_go(two):
    (code, step), other = (process["stopped"] for process in two[4])
    assert code == 143 and step > pair.STEPS
    assert list(other) == [code, step]


@pytest.mark.skipif(BACKEND != "tensorflow", reason="on JAX a step is one program")
def test_replicas_drop_entries_of_their_own(two):
    one, other = (process["dropped"] for process in two[4])
    assert set(one) == set(other) == {0.0, 2.0} and 10 < (one != other).sum() < 54


def test_a_process_whose_peer_is_lost_ends_within_a_minute_and_says_why(two):
    _, code, noticed, seconds, _ = two
    assert code not in (0, None) and seconds < 60
    assert "was not noticed" not in noticed
    assert "another process was lost first" in noticed or "another task died" in noticed


def test_one_process_writes(two):
    rows = (two[0] / "metrics.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[:5]] == ["step", "1", "2", "3", "4"]
    assert any((two[0] / "checkpoints").glob("step-*"))


def test_what_a_backend_cannot_do_is_refused_in_words():
    def start(sizes=(8,), **settings):
        return scaling.start(SimpleNamespace(**settings), sizes)

    with pytest.raises(ValueError, match="--accumulate of at least 1. Received: 0"):
        start(accumulate=0)
    with pytest.raises(ValueError, match="multiple of 3 rows, for 3 parts.*Received: 8 rows"):
        start(accumulate=3)
    with pytest.raises(ValueError, match="without --accumulate.*Received: --accumulate 2"):
        start(accumulate=2, objective="rtd")
    if BACKEND != "jax":
        with pytest.raises(ValueError, match="cannot cut a model into shards. Received: data=2,m"):
            start(mesh="data=2,model=2")
        with pytest.raises(ValueError, match="no --processes on"):
            start(processes="auto")
    if BACKEND == "torch":
        with pytest.raises(ValueError, match="per-node 8. Received: --mesh data=8"):
            start(mesh="data=8")
    if BACKEND == "tensorflow":
        with pytest.raises(ValueError, match="at most . devices"):
            start(mesh="data=64")


def test_P2_a_loss_scale_for_each_device_is_refused_in_words():
    half = SimpleNamespace(dtype_policy="mixed_float16")
    with pytest.raises(ValueError, match="mixed_bfloat16 on several devices with tensorflow"):
        scaling._check(half, "tensorflow", 1, 2, False)
    scaling._check(half, "jax", 4, 2, False)
    with pytest.raises(ValueError, match="--accumulate 1 on several devices with TensorFlow"):
        scaling._check(SimpleNamespace(), "tensorflow", 4, 2, False)
    with pytest.raises(ValueError, match="Received: --presets-every 5"):
        scaling._check(SimpleNamespace(presets_every=5), "jax", 1, 2, True)
