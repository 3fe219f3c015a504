import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_bert3.training.distribution import check_layouts, distribute, layouts_for, parse_mesh
from tests.tasks import toy

ROOT = Path(__file__).parents[2]
SIZES = {"vocabulary_size": 24, "batch_size": 8}
IS_JAX = keras.backend.backend() == "jax"


def test_meshes_are_read():
    assert parse_mesh("data=8") == {"data": 8}
    assert parse_mesh("data=4, model=2") == {"data": 4, "model": 2}


@pytest.mark.parametrize("text", ["", "8", "data=", "data=0", "data=2,data=2", "model=2", "x=1"])
def test_other_meshes_are_refused(text):
    with pytest.raises(ValueError, match="such as data=8 or data=4,model=2"):
        parse_mesh(text)


def test_every_layout_matches_a_variable_or_is_refused():
    task = toy.masked_lm(num_layers=1)
    check_layouts(task, layouts_for(2, 24))
    with pytest.raises(ValueError, match="Received: 'nothing', which matches none of"):
        check_layouts(task, {**layouts_for(2, 24), "nothing": (None,)})


def test_a_table_whose_tokens_the_devices_do_not_divide_is_cut_by_columns():
    assert (None, "model") in layouts_for(4, 30522).values()
    table = [axes for pattern, axes in layouts_for(2, 30522).items() if "token" in pattern]
    assert table == [("model", None)]


@pytest.mark.skipif(IS_JAX, reason="a mesh works on jax")
def test_another_backend_is_refused_in_words():
    with pytest.raises(ValueError, match=f"shards. Received: {keras.backend.backend()}"):
        distribute("data=1", **SIZES)


@pytest.mark.skipif(not IS_JAX, reason="a mesh needs jax")
def test_sizes_that_a_mesh_does_not_divide_are_refused():
    with pytest.raises(ValueError, match="as many as there are. Received: data=64"):
        distribute("data=64", **SIZES)


PROGRAM = """
import json, sys
import keras
from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.training import distribution
from keras_bert3.training.optimizers import BertAdam
from tests.tasks import toy
from tests.training.test_distribution import SIZES

results = {}
for mesh in (None, "data=8", "data=4,model=2"):
    keras.utils.set_random_seed(0)
    layouts = distribution.distribute(mesh, **SIZES) if mesh else {}
    task = MaskedLM(toy.backbone(num_layers=1))
    task.compile(optimizer=BertAdam(1e-2))
    distribution.check_layouts(task, layouts)
    batches = (toy.batch(rows=8, seed=i) for i in range(99))
    losses = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(logs["loss"]))
    task.fit(batches, steps_per_epoch=10, verbose=0, callbacks=[keep])
    held = [distribution.bytes_per_device(v) for v in (task.variables, task.optimizer.variables)]
    results[mesh or "one"] = {"losses": losses, "held": held}
    if mesh:
        keras.distribution.set_distribution(None)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results():
    if not IS_JAX:
        pytest.skip("a mesh needs jax")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.parametrize("mesh", ["data=8", "data=4,model=2"])
def test_a_mesh_gives_the_losses_of_one_device(results, mesh):
    assert len(results["one"]["losses"]) == 10
    np.testing.assert_allclose(results[mesh]["losses"], results["one"]["losses"], rtol=1e-5)


def test_shards_and_their_moments_are_on_their_devices_alone(results):
    (whole, whole_moments), (copy, _), (shard, moments) = (
        list(map(lambda held: max(held.values()), results[mesh]["held"]))
        for mesh in ("one", "data=8", "data=4,model=2")
    )
    assert len(results["data=8"]["held"][0]) == 8
    assert copy == whole
    # Four bytes each: half of 4 matrices of 16 x 16, 2 of 16 x 32, the table of 24 x 16, 5 biases.
    halved = (4 * 16 * 16 + 2 * 16 * 32 + 24 * 16 + 3 * 16 + 32) * 4 // 2
    assert whole - shard == halved
    assert whole_moments - moments == 2 * halved
