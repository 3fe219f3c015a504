"""All variables that a training step of a task reads and changes, by name, and their values."""

import re

import keras
import numpy as np

from keras_bert3.training import padding


def state_of(task) -> dict[str, keras.Variable]:
    """All that a step reads and changes, by kind and path; weights first, then optimisers."""
    if task.optimizer is not None and not task.optimizer.built:
        task.optimizer.build(task.trainable_variables)
    groups = {"model": task.variables}
    for kind, optimizer in _optimizers(task):
        groups[kind] = optimizer.variables
        padding.mark(groups["model"], groups[kind])
    state = {}
    for kind, variables in groups.items():
        for variable in variables:
            # Keras numbers layers by when they were made, which is no part of what they are.
            name = re.sub(r"_\d+(?=[/_]|$)", "", f"{kind}/{variable.path}")
            state[f"{name}#{len(state)}"] = variable
    return state


def _optimizers(task):
    """Yield the optimiser of a task, and those of models within that are trained by themselves."""
    if task.optimizer is not None:
        yield "optimizer", task.optimizer
    for layer in task._flatten_layers(include_self=False):
        optimizer = getattr(layer, "optimizer", None)
        if optimizer is not None and optimizer.built:
            yield f"{layer.name}/optimizer", optimizer


def whole_value(variable) -> np.ndarray:
    """The value of a variable, without rows to spare.

    Where processes hold shards of it, all must ask, and all get it.
    """
    return padding.cut(variable, _everything(variable.value))


def _everything(value) -> np.ndarray:
    if keras.backend.backend() == "tensorflow":
        value = getattr(value, "values", [value])[0]  # one copy for each device
    if getattr(value, "is_fully_addressable", True):
        return np.asarray(keras.ops.convert_to_numpy(value))
    if value.is_fully_replicated:
        return np.asarray(value.addressable_data(0))
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


def assign(task, arrays, notes, weights_only: bool, path) -> None:
    """Give every variable of a task its array; refuse before the first if any does not fit.

    Args:
        task: compiled.
        arrays: by number, as `Checkpoints.save` writes them.
        notes: with the `names` of the arrays and the `backend` they are of.
        weights_only: leave the optimisers as they are.
        path: of the checkpoint, for errors.

    Raises:
        ValueError: if the arrays are of another model, optimiser or backend.
    """
    state = state_of(task)
    if notes["backend"] != keras.backend.backend():
        raise ValueError(
            f"Expected a checkpoint of backend {keras.backend.backend()}. Received: '{path}', of "
            f"{notes['backend']}; a preset carries weights from one backend to another"
        )
    saved = {name: arrays[f"{i:05d}"] for i, name in enumerate(notes["names"])}
    if weights_only:
        state, saved = (
            {name: x for name, x in group.items() if name.startswith("model/")}
            for group in (state, saved)
        )
    _check(state, saved, path)
    for name, variable in state.items():
        array = saved[name]
        if keras.backend.standardize_dtype(variable.dtype) == "bfloat16":
            array = array.view(_bfloat16())
        variable.assign(padding.filled(variable, array))


def _bfloat16():
    import ml_dtypes

    return ml_dtypes.bfloat16


def _check(state, saved, path):
    """Refuse a checkpoint whose variables are not those of the task, naming the first."""
    if list(state) != list(saved):
        other = sorted(set(state) ^ set(saved)) or ["another order"]
        where = "the model" if other[0] in state else f"'{path}'"
        raise ValueError(
            f"Expected a checkpoint of this model and optimiser. Received: '{path}', where only "
            f"{where} has {other[0].split('#')[0]}"
        )
    for name, variable in state.items():
        if padding.shape_of(variable) != saved[name].shape:
            raise ValueError(
                f"Expected shape {padding.shape_of(variable)} for {name.split('#')[0]}. "
                f"Received: {saved[name].shape} in '{path}'"
            )
