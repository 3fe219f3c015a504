"""TensorFlow's strategies under `model.fit`: several devices of a host, several hosts.

Keras 3.15 loses batches before the first step under a strategy, averages ids to build a model, and
with several workers cannot reduce what a step returns. What is here stands in their place.
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
    trainer: Any = importlib.import_module("keras.src.backend.tensorflow.trainer")
    with strategy.scope():
        task._symbolic_build(data_batch=next(iter(batches)))
    reduce_per_replica = trainer.reduce_per_replica

    def mean(values, strategy, reduction):
        reduce = lambda value: strategy.reduce("MEAN", value, axis=None)  # noqa: E731
        return keras.tree.map_structure(reduce, values)

    task._maybe_symbolic_build = lambda iterator=None, data_batch=None: None
    trainer.reduce_per_replica = mean
    try:
        yield
    finally:
        trainer.reduce_per_replica = reduce_per_replica
        del task._maybe_symbolic_build
