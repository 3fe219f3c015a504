"""How a run is spread: over processes, over devices, and over parts of a batch.

| backend    | `--mesh data=n`        | `data=n,model=m` | processes            | `--accumulate` |
|------------|------------------------|------------------|----------------------|----------------|
| JAX        | n devices of all hosts | yes              | one a host           | yes            |
| PyTorch    | n processes            | refused          | one a device         | yes            |
| TensorFlow | n devices of all hosts | refused          | one a host           | on one device  |

The losses are those of one device with the whole batch, but for the order in which numbers are
added.
"""

import contextlib
import importlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from keras_bert3.runs.run_directory import new_run, write_json
from keras_bert3.training import distribution, multi_worker, processes, replicas
from keras_bert3.training.accumulation import part_of, shared, summed
from keras_bert3.training.checkpointing import whole_value
from keras_bert3.training.processes import ALONE, Processes
from keras_bert3.training.rematerialisation import rematerialise

_PREPARED = "prepared.json"


@dataclass(frozen=True)
class Scale:
    """What a run is spread over.

    Attributes:
        processes: this one among all.
        mesh: as `--mesh`; None for one device.
        parts: micro-batches of a batch.
        strategy: of TensorFlow, where there is one.
    """

    processes: Processes = ALONE
    mesh: str | None = None
    parts: int = 1
    strategy: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process writes what the run leaves."""
        return self.processes.is_first

    @property
    def is_spread(self) -> bool:
        """Whether the model is on more than one device."""
        return self.processes.number > 1 or self.mesh is not None

    def batches(self, training, step: int) -> Iterable:
        """Yield what this process trains on, from a step on.

        Args:
            training: `training.forever(step)` yields whole batches.
            step: number of the first.
        """
        whole, (number, index) = training.forever(step), self._share()
        if self.strategy is not None:
            return multi_worker.dataset(shared(whole, 1))
        if self.parts > 1 or replicas.count() > 1:
            return shared(whole, self.parts, number, index, averaged=replicas.count())
        if number == 1:
            return whole
        if hasattr(training, "of_shard"):
            return training.of_shard(number, index).forever(step)
        return part_of(whole, number, index)

    def gathered(self, number: int) -> list[int]:
        """Return a number of each process, given that of this one; all must ask."""
        return processes.gathered(number, self.processes, self.strategy)

    def _share(self) -> tuple[int, int]:
        """How many shares of a batch there are, and which is that of this process.

        Processes that hold shards of the same copy of a model (JAX) train on the same rows.
        """
        number, index = self.processes.number, self.processes.index
        if number == 1 or keras.backend.backend() != "jax":
            return number, index
        copies = distribution.parse_mesh(self.mesh or "data=1")["data"]
        return (number, index) if copies >= number else (copies, index * copies // number)


ONE_DEVICE = Scale()


def start(config, batch_sizes: Sequence[int]) -> Scale:
    """Find the other processes, and refuse what this backend or these sizes cannot do.

    Args:
        config: has `mesh`, `accumulate` and `processes`, each perhaps left out.
        batch_sizes: of the phases.

    Raises:
        ValueError: naming the flag.
    """
    mesh, parts = getattr(config, "mesh", None), getattr(config, "accumulate", 1)
    backend = keras.backend.backend()
    sizes = distribution.parse_mesh(mesh) if mesh else {}
    if parts < 1:
        raise ValueError(f"Expected --accumulate of at least 1. Received: {parts}")
    if backend != "jax" and sizes.get("model", 1) > 1:
        raise ValueError(
            f"Expected --mesh data=n on {backend}, which cannot cut a model into shards. "
            f"Received: {mesh}"
        )
    found = processes.join(getattr(config, "processes", None))
    if found.number > 1 and not getattr(config, "output", "given"):
        raise ValueError("Expected --output, where several processes are one run. Received: none")
    mesh, strategy = _devices_of(backend, mesh, sizes, found)
    count = distribution.parse_mesh(mesh)["data"] if mesh else 1
    _check(config, backend, parts, count, found.number > 1 and sizes.get("model", 1) > 1)
    _divides(batch_sizes, parts, count)
    return Scale(found, mesh, parts, strategy)


def _devices_of(backend, mesh, sizes, found):
    """The mesh, all devices where none is named, and on TensorFlow its strategy."""
    if backend == "jax":
        everything = f"data={keras.distribution.get_device_count()}" if found.number > 1 else None
        return mesh or everything, None
    if backend == "torch":
        if sizes.get("data", found.number) != found.number:
            raise ValueError(
                f"Expected as many processes as --mesh names: torchrun --nproc-per-node "
                f"{sizes['data']}. Received: --mesh {mesh} and {found.number} processes"
            )
        return (f"data={found.number}" if found.number > 1 else None), None
    strategy = multi_worker.strategy(sizes.get("data"), found.number)
    return (f"data={strategy.num_replicas_in_sync}" if strategy else None), strategy


def _check(config, backend, parts, count, shards):
    """Refuse what would give other numbers than one device does."""
    separate = count > 1 and backend != "jax"
    if getattr(config, "objective", None) == "rtd" and (parts > 1 or separate):
        raise ValueError(
            "Expected replaced-token detection without --accumulate, and on several devices only "
            f"on JAX: its labels are drawn within the step. Received: --accumulate {parts}, "
            f"{count} copies on {backend}"
        )
    if separate and backend == "tensorflow" and parts > 1:
        raise ValueError(
            "Expected --accumulate 1 on several devices with TensorFlow, whose strategies Keras "
            f"cannot combine with it. Received: --accumulate {parts}"
        )
    if getattr(config, "presets_every", None) and shards:
        raise ValueError(
            "Expected no --presets-every where several processes hold shards of a model. "
            f"Received: --presets-every {config.presets_every}"
        )
    if separate and getattr(config, "dtype_policy", "") == "mixed_float16":
        raise ValueError(
            f"Expected mixed_bfloat16 on several devices with {backend}, where each would have a "
            "loss scale of its own. Received: mixed_float16"
        )


def _divides(batch_sizes, parts, copies):
    for size in batch_sizes:
        if size % (parts * copies):
            raise ValueError(
                f"Expected batches of a multiple of {parts * copies} rows, for {parts} parts of a "
                f"batch on {copies} copies of the model. Received: {size} rows"
            )


def compile_settings(task, optimizer, parts: int) -> dict[str, Any]:
    """Return arguments of `compile` for parts of a batch, and for replicas with their own losses.

    Args:
        task: to be compiled with the paper's losses and metrics.
        optimizer: not built yet.
        parts: micro-batches of a batch.
    """
    settings: dict[str, Any] = {"optimizer": optimizer}
    if parts > 1:
        optimizer.gradient_accumulation_steps = parts
    if parts > 1 or replicas.count() > 1:
        defaults = task.default_compile()
        settings["loss"] = summed(defaults["loss"])
        settings["weighted_metrics"] = defaults.get("weighted_metrics")
    return settings


@contextlib.contextmanager
def shared_run(output: str | Path, config, scale: Scale) -> Iterator[Path]:
    """Open the folder of a run; processes but the first wait until its texts are prepared there.

    The folder is on a disk that all see. Processes but the first print nothing.
    """
    folder = Path(output)
    if scale.is_first:
        with new_run(folder, config) as run:
            yield run
        return
    while not (folder / _PREPARED).exists():
        time.sleep(0.5)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield folder


def make_task(run: Path, course, config, tokenizer, scale: Scale):
    """Make the compiled task of a run on its devices; the texts are prepared.

    Raises:
        ValueError: if a layout of a mesh matches no variable, or does not divide one.
    """
    if scale.is_first:
        write_json(run / _PREPARED, {"processes": scale.processes.number})
    layouts = {}
    if scale.mesh and keras.backend.backend() == "jax":
        layouts = distribution.distribute(scale.mesh, config.batch_size // scale.parts)
    with scale.strategy.scope() if scale.strategy else contextlib.nullcontext():
        task = course.make_task(config, tokenizer)
        distribution.check_layouts(task, layouts)
        if getattr(config, "remat", False):
            rematerialise(task)
        return task


def on_one_device(course, config, tokenizer, task, scale: Scale):
    """Return the trained task, or a copy of it on one device, where it was on several.

    All processes ask; those but the first get None.
    """
    if not scale.is_spread:
        return task
    values = [whole_value(variable) for variable in task.weights]
    if keras.backend.backend() == "jax":
        keras.distribution.set_distribution(None)
    if not scale.is_first:
        return None
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        copy = course.make_task(config, tokenizer)
    for variable, value in zip(copy.weights, values, strict=True):
        variable.assign(value)
    if keras.backend.backend() == "torch":
        importlib.import_module("torch.distributed").destroy_process_group()
    return copy
