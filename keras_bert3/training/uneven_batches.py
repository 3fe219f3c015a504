"""Batches that the devices of a mesh do not divide (JAX), such as the last one of an evaluation.

Keras 3.15 refuses them with an error of JAX. Rows to spare would be no help: they would count in
means over a batch and in metrics without weights. Here each device computes the whole of such a
batch, so that all numbers are those of one device.
"""

import importlib
from typing import Any

import keras


def allow() -> None:
    """Let Keras place batches of any size on the mesh of its distribution."""
    trainer: Any = importlib.import_module("keras.src.backend.jax.trainer")
    before = trainer._distribute_data
    if before.__module__ == __name__:
        return

    def place(data, layouts=None):
        mesh = getattr(keras.distribution.distribution(), "device_mesh", None)
        return before(data, layouts if mesh is None or _divides(data) else _copies(data, mesh))

    trainer._distribute_data = place


def _divides(data) -> bool:
    """Whether the devices along the mesh's axis of batches divide the rows of a batch.

    Raises:
        ValueError: if they do not, and there are other processes, whose rows are others.
    """
    parallel = keras.distribution.distribution()
    mesh, rows = parallel.device_mesh, keras.tree.flatten(data)[0].shape[0]
    parts = mesh.shape[mesh.axis_names.index(parallel.batch_dim_name)]
    parts //= min(parts, parallel.num_processes)
    if rows % parts and parallel.num_processes > 1:
        raise ValueError(
            f"Expected batches of a multiple of {parts} rows in each of several processes. "
            f"Received: {rows} rows"
        )
    return rows % parts == 0


def _copies(data, mesh):
    """Layouts of a batch that is whole on each device."""

    def copy(array):
        return keras.distribution.TensorLayout([None] * len(array.shape), mesh).backend_layout

    return keras.tree.map_structure(lambda x: None if x is None else copy(x), data)
