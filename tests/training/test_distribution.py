import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert3.training import distribution
from keras_bert3.training.distribution import LAYOUTS, check_layouts, distribute, parse_mesh
from tests.tasks import toy
from tests.training import meshes

ROOT = Path(__file__).parents[2]
IS_JAX = keras.backend.backend() == "jax"


def test_meshes_are_read():
    assert parse_mesh("data=8") == {"data": 8}
    assert parse_mesh("data=4, model=2") == {"data": 4, "model": 2}


@pytest.mark.parametrize("text", ["", "8", "data=", "data=0", "data=2,data=2", "model=2", "x=1"])
def test_other_meshes_are_refused(text):
    with pytest.raises(ValueError, match="such as data=8 or data=4,model=2"):
        parse_mesh(text)


@pytest.mark.parametrize("family", meshes.FAMILIES)
def test_every_layout_matches_a_variable_or_is_refused(family):
    task = meshes.make(family, dropout=0.0)
    check_layouts(task, LAYOUTS)
    with pytest.raises(ValueError, match="Received: 'nothing', which matches none of"):
        check_layouts(task, {**LAYOUTS, "nothing": (None,)})


@pytest.mark.skipif(IS_JAX, reason="a mesh works on jax")
def test_another_backend_is_refused_in_words():
    with pytest.raises(ValueError, match=f"shards. Received: {keras.backend.backend()}"):
        distribute("data=1", 8)


@pytest.mark.skipif(not IS_JAX, reason="a mesh needs jax")
def test_sizes_that_a_mesh_does_not_divide_are_refused():
    with pytest.raises(ValueError, match="as many as there are. Received: data=64"):
        distribute("data=64", 8)


@pytest.mark.skipif(not IS_JAX, reason="a mesh needs jax")
def test_D4_a_batch_is_cut_along_the_axis_called_data_wherever_it_stands():
    count = keras.distribution.get_device_count()
    try:
        distribute(f"model=1,data={count}", batch_size=count)
        parallel = keras.distribution.distribution()
        assert parallel.batch_dim_name == "data"
        assert parallel.get_data_layout((8, 12)).axes == ("data", None)
    finally:
        keras.distribution.set_distribution(None)


@pytest.mark.skipif(not IS_JAX, reason="a mesh needs jax")
def test_a_variable_that_a_mesh_cannot_cut_is_named_and_so_are_heads(monkeypatch):
    mesh = SimpleNamespace(axis_names=["data", "model"], shape=(1, 3))
    parallel = SimpleNamespace(device_mesh=mesh)
    layout = SimpleNamespace(axes=(None, "model"))
    monkeypatch.setattr(
        keras.distribution.ModelParallel, "get_variable_layout", lambda self, variable: layout
    )
    variable = SimpleNamespace(path="query/kernel", shape=(16, 16))
    with pytest.raises(ValueError, match="'model'.* of 3. Received: query/kernel of shape"):
        distribution._Parallel.get_variable_layout(_Bare(mesh), variable)
    monkeypatch.setattr(keras.distribution, "distribution", lambda: parallel)
    with pytest.raises(ValueError, match="num_heads to be a multiple of 3.*Received: num_heads=2"):
        check_layouts(toy.masked_lm(num_layers=1), LAYOUTS)


class _Bare(distribution._Parallel):
    """One without the devices that the constructor looks for."""

    def __init__(self, mesh):
        self._device_mesh = mesh


RUNS = ["bert:one", "bert:data=8", "bert:data=4,model=2"]


@pytest.fixture(scope="module")
def results():
    """Four steps of each run, with dropout, on eight devices of the CPU."""
    if not IS_JAX:
        pytest.skip("a mesh needs jax")
    program = [sys.executable, "-m", "tests.training.meshes", "--steps", "4", "--dropout", "0.1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.run(
        [*program, "--runs", *RUNS], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.parametrize("run", [run for run in RUNS if not run.endswith("one")])
def test_a_mesh_gives_the_losses_of_one_device_with_the_same_dropout(results, run):
    one = results[run.split(":")[0] + ":one"]["losses"]
    assert len(one) == 4 and one[0] != one[3]
    np.testing.assert_allclose(results[run]["losses"], one, rtol=1e-5)
    assert results[run]["again"] == results[run]["losses"]  # bit for bit, from a checkpoint


def test_a_batch_that_a_mesh_does_not_divide_scores_as_on_one_device(results):
    one, mesh = (results[f"bert:{name}"]["uneven"] for name in ("one", "data=4,model=2"))
    np.testing.assert_allclose(mesh, one, rtol=1e-6)


def test_a_table_cut_by_tokens_has_rows_to_spare_that_no_file_has(results):
    kept = results["bert:data=4,model=2"]["kept"]
    assert kept == {"equal": True, "rows": meshes.VOCABULARY, "spare": 0.0}
    (table,) = (
        shape
        for path, shape in results["bert:data=4,model=2"]["sizes"].items()
        if path.endswith("token/embeddings")
    )
    assert table == [128, 16]


def test_D2_D5_shards_and_their_moments_are_on_their_devices_alone(results):
    (whole, whole_moments), (copy, _), (shard, moments) = (
        [max(held.values()) for held in results[f"bert:{mesh}"]["held"]]
        for mesh in ("one", "data=8", "data=4,model=2")
    )
    assert len(results["bert:data=8"]["held"][0]) == 8
    assert copy == whole
    # Four bytes each: half of 4 matrices of 16 x 16, 2 of 16 x 32, 5 biases; the table of 25 x 16
    # has 128 rows, of which a device holds half.
    saved = (4 * 16 * 16 + 2 * 16 * 32 + 3 * 16 + 32) * 4 // 2 + (25 - 128 // 2) * 16 * 4
    assert whole - shard == saved
    assert whole_moments - moments == 2 * saved


def test_gradients_are_added_up_in_one_message_and_nothing_leaves_the_devices(results):
    run = results["bert:data=8"]
    assert run["foreign"] == []
    tensors = [[shape for shape in shapes if shape] for shapes in run["all_reduce"]]
    (gradients,) = [shapes for shapes in tensors if shapes]  # the others are sums of a loss
    sizes = [",".join(map(str, shape)) for shape in run["sizes"].values()]
    # A tied table has gradients from two places; parts that are known to be equal go once.
    assert sum(map(numbers, gradients)) == pytest.approx(sum(map(numbers, sizes)), rel=0.1)


def numbers(shape):
    return int(np.prod([int(size) for size in shape.split(",")]))
