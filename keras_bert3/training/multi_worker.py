"""TensorFlow's strategies under `model.fit`: several devices of a host, several hosts.

Keras 3.15 loses batches before the first step under a strategy, averages ids to build a model, and
with several workers cannot reduce what a step returns; and each replica drops the same entries, as
all hold the same random state. What is here stands in their place.
"""

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import keras


def strategy(devices: int | None, workers: int):
    """Create the strategy of a run, or return None for one device.

    Args:
        devices: copies of the model; None for one, or with several workers for all there are.
        workers: processes that `TF_CONFIG` names.

    Raises:
        ValueError: if there are fewer devices, or with several workers another number of them.
    """
    tf = importlib.import_module("tensorflow")
    if workers > 1:
        made = tf.distribute.MultiWorkerMirroredStrategy()
        if devices not in (None, made.num_replicas_in_sync):
            raise ValueError(
                f"Expected --mesh data={made.num_replicas_in_sync}, as many devices as all workers "
                f"have. Received: data={devices}"
            )
        return made
    if devices in (None, 1):
        return None
    found = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if len(found) < devices:
        raise ValueError(
            f"Expected a mesh of at most {len(found)} devices, as many as there are. "
            f"Received: data={devices}"
        )
    return tf.distribute.MirroredStrategy([device.name for device in found[:devices]])


def dataset(batches: Iterator):
    """Turn whole batches into a data set that a strategy divides over workers and devices."""
    tf = importlib.import_module("tensorflow")
    first = next(batches)

    def everything():
        yield first
        yield from batches

    signature = keras.tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), first)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    made = tf.data.Dataset.from_generator(everything, output_signature=signature)
    return made.with_options(options)


@contextlib.contextmanager
def fitting(task, strategy, batches: Iterable) -> Iterator[None]:
    """Let `task.fit` run under a strategy.

    Args:
        task: made and compiled in the strategy's scope.
        strategy: None changes nothing.
        batches: what it is fitted to; the first is looked at.
    """
    if strategy is None:
        yield
        return
    with strategy.scope():
        task._symbolic_build(data_batch=next(iter(batches)))
    task._maybe_symbolic_build = lambda iterator=None, data_batch=None: None
    try:
        with _replaced("trainer", reduce_per_replica=_mean), own_random_numbers():
            yield
    finally:
        del task._maybe_symbolic_build


def _mean(values, strategy, reduction):
    """What a step returned, averaged over replicas of all workers."""
    reduce = lambda value: strategy.reduce("MEAN", value, axis=None)  # noqa: E731
    return keras.tree.map_structure(reduce, values)


@contextlib.contextmanager
def own_random_numbers() -> Iterator[None]:
    """Give each replica of a strategy random numbers of its own, from the state that all share."""
    tf = importlib.import_module("tensorflow")
    cast_seed = importlib.import_module("keras.src.backend.tensorflow.random")._cast_seed

    def of_replica(seed):
        context = tf.distribute.get_replica_context()
        index = 0 if context is None else tf.cast(context.replica_id_in_sync_group, "int32")
        # Far from the seeds of other generators, which differ in this first number too.
        return cast_seed(seed) + tf.stack([_REPLICA * index, 0])

    with _replaced("random", _cast_seed=of_replica):
        yield


_REPLICA = 15_485_863
"""Added to a seed for each replica before: a prime."""


@contextlib.contextmanager
def _replaced(module: str, **functions) -> Iterator[None]:
    """Put functions in the place of those of a module of Keras for TensorFlow."""
    place: Any = importlib.import_module(f"keras.src.backend.tensorflow.{module}")
    before = {name: getattr(place, name) for name in functions}
    for name, function in functions.items():
        setattr(place, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(place, name, function)
