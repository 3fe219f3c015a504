"""The processes of a run: how they find each other, and how they end together.

| backend    | one process for each                  | found through                             |
|------------|---------------------------------------|-------------------------------------------|
| JAX        | host; it sees all devices of its host | `--processes`, `KERAS_DISTRIBUTION_*`, or |
|            |                                       | the cluster's own (SLURM, TPU): `auto`    |
| PyTorch    | device; `torchrun` starts them        | `RANK`, `WORLD_SIZE`, ... of `torchrun`   |
| TensorFlow | host; it sees all devices of its host | `TF_CONFIG`                               |

A process that meets an error ends at once, so that the others notice: on JAX by heartbeats that
fail to come, or by a connection that breaks, on PyTorch through `torchrun`.
"""

import importlib
import json
import os
import sys
import traceback
from dataclasses import dataclass
from datetime import timedelta

import keras
import numpy as np

_ENVIRONMENT = "KERAS_DISTRIBUTION_"
_HEARTBEAT = 30
"""Seconds without a sign of life after which a process counts as lost (JAX). With ten, a machine
that lets a process wait for its processor that long ends runs that nothing is wrong with."""
_START = 300
"""Seconds in which all processes must have started."""
_END = 24 * 3600
"""Seconds that processes may end one after another (JAX): the first evaluates alone."""


@dataclass(frozen=True)
class Processes:
    """This process among those of its run.

    Attributes:
        number: processes of the run.
        index: of this one, from 0; the first writes what the run leaves.
    """

    number: int = 1
    index: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process writes."""
        return self.index == 0


ALONE = Processes()


def join(text: str | None = None) -> Processes:
    """Find the other processes of the run; call it before anything is computed.

    Args:
        text: `host:port,number,index`, the address of the first process, how many there are and
            which this is; `auto`, as the cluster says (JAX); None, as the environment says: one
            process where it says nothing.

    Raises:
        ValueError: for a text that says something else, or that the backend cannot follow.
    """
    backend = keras.backend.backend()
    if text is not None and backend != "jax":
        other = {"torch": "torchrun starts", "tensorflow": "TF_CONFIG describes"}[backend]
        raise ValueError(
            f"Expected no --processes on {backend}, where {other} them. Received: {text!r}"
        )
    found = {"jax": _join_jax, "torch": _join_torch, "tensorflow": _join_tensorflow}[backend](text)
    if found.number > 1:
        sys.excepthook = _ends_at_once(found)
    return found


def parse(text: str) -> tuple[str, int, int]:
    """Read `host:port,number,index`.

    Raises:
        ValueError: if it is anything else.
    """
    address, *numbers = text.split(",")
    if ":" in address and len(numbers) == 2 and all(n.strip().isdecimal() for n in numbers):
        number, index = map(int, numbers)
        if index < number:
            return address, number, index
    raise ValueError(
        "Expected --processes as host:port,number,index, such as 10.0.0.1:1234,2,0, or auto. "
        f"Received: {text!r}"
    )


def gathered(number: int, processes: Processes = ALONE, strategy=None) -> list[int]:
    """Return a number of each process; all must ask.

    Args:
        number: of this process, less than 2^53.
        processes: of the run.
        strategy: of TensorFlow; a process says its number once for each device of its own.
    """
    if processes.number == 1:
        return [number]
    return _GATHERED[keras.backend.backend()](number, processes, strategy)


def _gathered_jax(number, processes, strategy):
    utilities = importlib.import_module("jax.experimental.multihost_utils")
    halves = np.array(divmod(number, 2**31), "int32")  # wider integers are off in JAX
    return [int(high) * 2**31 + int(low) for high, low in utilities.process_allgather(halves)]


def _gathered_torch(number, processes, strategy):
    distributed = importlib.import_module("torch.distributed")
    found = [None] * processes.number
    distributed.all_gather_object(found, number)
    return found


def _gathered_tensorflow(number, processes, strategy):
    tf, count = importlib.import_module("tensorflow"), strategy.num_replicas_in_sync

    def in_its_place(context):
        return number * tf.one_hot(context.replica_id_in_sync_group, count, dtype="float64")

    each = strategy.experimental_distribute_values_from_function(in_its_place)
    return [int(one) for one in strategy.reduce("SUM", each, axis=None).numpy()]


_GATHERED = {
    "jax": _gathered_jax,
    "torch": _gathered_torch,
    "tensorflow": _gathered_tensorflow,
}


def _join_jax(text):
    if text is None and f"{_ENVIRONMENT}NUM_PROCESSES" in os.environ:
        names = ("JOB_ADDRESSES", "NUM_PROCESSES", "PROCESS_ID")
        addresses, *numbers = (os.environ.get(f"{_ENVIRONMENT}{name}", "") for name in names)
        text = ",".join([addresses.split(",")[0], *numbers])  # the first coordinates
    if text is None:
        return ALONE
    jax = importlib.import_module("jax")
    address, number, index = (None, None, None) if text == "auto" else parse(text)
    if number == 1:
        return ALONE
    # keras.distribution.initialize, which calls the same, cannot set these limits.
    jax.distributed.initialize(
        coordinator_address=address,
        num_processes=number,
        process_id=index,
        initialization_timeout=_START,
        heartbeat_timeout_seconds=_HEARTBEAT,
        shutdown_timeout_seconds=_END,
    )
    return Processes(jax.process_count(), jax.process_index())


def _join_torch(text):
    number = int(os.environ.get("WORLD_SIZE", "1"))
    if number == 1:
        return ALONE
    torch = importlib.import_module("torch")
    distributed = importlib.import_module("torch.distributed")
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if has_gpu else "gloo", timeout=timedelta(minutes=30))
    return Processes(distributed.get_world_size(), distributed.get_rank())


def _join_tensorflow(text):
    described = json.loads(os.environ.get("TF_CONFIG", "{}"))
    workers = described.get("cluster", {}).get("worker", [])
    if len(workers) < 2:
        return ALONE
    return Processes(len(workers), int(described["task"]["index"]))


def _ends_at_once(processes):
    """An excepthook that does not wait for processes which wait for this one."""

    def hook(kind, error, trace):
        traceback.print_exception(kind, error, trace)
        print(
            f"\nProcess {processes.index} of {processes.number} ends by the error above. Where it "
            "speaks of a connection, another process was lost first, and that one knows why. Given "
            "the same command again, the run goes on after its last checkpoint.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)

    return hook
