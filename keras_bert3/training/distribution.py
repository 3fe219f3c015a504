"""One model over many devices: copies of it, or its matrices cut into shards (JAX).

A mesh is a table of devices with named axes. Along `data`, each device sees a part of the batch.
Along `model`, each holds a part of the matrices, cut so that a block communicates twice (Shoeybi et
al. 2019, section 3): query, key, value and the first matrix of the feed-forward network by columns,
which are heads and inner units; the projections that follow them by rows. The token table is cut by
rows, which are tokens, and gets some to spare where their number needs it; see `padding`. What is
not named is whole on every device, and so are the moments of the optimiser like their variables.
"""

import math
import re

import keras
import numpy as np

from keras_bert3.training import padding, uneven_batches

# One table for all backbones, as all are made of the same blocks. Keras matches whole paths.
_IN = "(query|key|value|position_query|position_key)"
LAYOUTS = {
    rf".*/attention/{_IN}/kernel": (None, "model"),
    rf".*/attention/{_IN}/bias": ("model",),
    r".*/attention/output_projection/kernel": ("model", None),
    r".*/feed_forward/intermediate/kernel": (None, "model"),
    r".*/feed_forward/intermediate/bias": ("model",),
    r".*/feed_forward/output_projection/kernel": ("model", None),
    r".*/embeddings/token/embeddings": ("model", None),
}


def parse_mesh(text: str) -> dict[str, int]:
    """Read a mesh: `data=8` or `data=4,model=2`.

    Raises:
        ValueError: for another axis, one twice, or a size that is not a number from 1.
    """
    pairs = [axis.partition("=")[::2] for axis in text.split(",")]
    sizes = {name.strip(): int(size) for name, size in pairs if size.strip().isdecimal()}
    known = set(sizes) <= {"data", "model"} and "data" in sizes
    if len(sizes) != len(pairs) or not known or min(sizes.values()) < 1:
        raise ValueError(f"Expected a mesh such as data=8 or data=4,model=2. Received: {text!r}")
    return sizes


def distribute(mesh: str, batch_size: int) -> dict[str, tuple]:
    """Place all that is made from now on, on a mesh. Call it before anything of Keras is made.

    Each process feeds its own part of a batch; with one process, the whole, and a last batch of
    `fit`, `evaluate` or `predict` may be of any size, see `uneven_batches`. A variable that a mesh
    does not divide is refused when it is made.

    Args:
        mesh: see `parse_mesh`; its sizes multiply to the number of devices of all processes.
        batch_size: rows of a batch over all devices; a multiple of `data`.

    Returns:
        Layouts by pattern of path, for `check_layouts`.

    Raises:
        ValueError: on another backend, with another number of devices, or for sizes that the mesh
            does not divide.

    Example:
        >>> layouts = distribute("data=4,model=2", 256)
        >>> task = MaskedLM(BertBackbone(**sizes.BERT["base_uncased"]))
        >>> check_layouts(task, layouts)
    """
    sizes = parse_mesh(mesh)
    _check_backend()
    devices = keras.distribution.list_devices()
    if math.prod(sizes.values()) != len(devices):
        raise ValueError(
            f"Expected a mesh of {len(devices)} devices, as many as there are. Received: {mesh}"
        )
    _divides(sizes["data"], "data", batch_size=batch_size)
    uneven_batches.allow()
    device_mesh = keras.distribution.DeviceMesh(tuple(sizes.values()), list(sizes), devices)
    if "model" not in sizes:
        keras.distribution.set_distribution(
            keras.distribution.DataParallel(device_mesh=device_mesh, auto_shard_dataset=False)
        )
        return {}
    layout_map = keras.distribution.LayoutMap(device_mesh)
    for pattern, axes in LAYOUTS.items():
        layout_map[pattern] = axes
    keras.distribution.set_distribution(
        _Parallel(layout_map=layout_map, batch_dim_name="data", auto_shard_dataset=False)
    )
    return LAYOUTS


class _Parallel(keras.distribution.ModelParallel):
    """Refuse a variable that its layout cannot cut, by name and before it is made."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        sizes = dict(zip(self.device_mesh.axis_names, self.device_mesh.shape, strict=True))
        for size, axis in zip(variable.shape, layout.axes, strict=False):
            if axis is not None and size % sizes[axis]:
                raise ValueError(
                    f"Expected each size that is cut along '{axis}' to be a multiple of "
                    f"{sizes[axis]}. Received: {variable.path} of shape {tuple(variable.shape)}"
                )
        return layout

    def rows_of(self, path, rows):
        """How many rows the table of `path` has in memory, some to spare where rows are cut."""
        layout = self._layout_map.get(path)
        axis = layout.axes[0] if layout is not None else None
        mesh = self.device_mesh
        return padding.rows_for(rows, mesh.shape[mesh.axis_names.index(axis)]) if axis else rows


def check_layouts(model, layouts: dict[str, tuple]) -> None:
    """Refuse a layout that no variable of a model took, and heads that a mesh would cut through.

    Raises:
        ValueError: naming the pattern, whose paths may have changed, or the number of heads.
    """
    paths = [variable.path for variable in model.variables]
    for pattern in layouts:
        if not any(re.fullmatch(pattern, path) for path in paths):
            raise ValueError(
                f"Expected each layout to match a variable. Received: {pattern!r}, which matches "
                f"none of {len(paths)}, such as {paths[0]}"
            )
    mesh = getattr(keras.distribution.distribution(), "device_mesh", None)
    if layouts and mesh is not None:
        cut = mesh.shape[mesh.axis_names.index("model")]
        for layer in model._flatten_layers():
            _divides(cut, "model", num_heads=getattr(layer, "num_heads", cut))


def bytes_per_device(variables) -> dict[str, int]:
    """How much of some variables each device holds (JAX)."""
    held: dict[str, int] = {}
    for variable in variables:
        for shard in variable.value.addressable_shards:
            name = str(shard.device)
            held[name] = held.get(name, 0) + int(np.prod(shard.data.shape)) * shard.data.itemsize
    return held


def _check_backend():
    backend = keras.backend.backend()
    if backend != "jax":
        raise ValueError(f"Expected the backend jax for a mesh of shards. Received: {backend}")


def _divides(parts: int, axis: str, **sizes: int):
    for name, size in sizes.items():
        if size % parts:
            raise ValueError(
                f"Expected {name} to be a multiple of {parts}, the devices along '{axis}' of the "
                f"mesh. Received: {name}={size}"
            )
