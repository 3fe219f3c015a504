"""Copies of models in other sizes."""

import keras

from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import give

_NOT_ARGUMENTS = ("backbone", "preprocessor")


def rebuilt(model, **sizes):
    """Construct a new model like `model`, its backbone with other arguments.

    Args:
        model: a `Backbone`, or a `Task`, whose preprocessor the new one shares.
        sizes: the backbone's arguments that change.
    """
    backbone = getattr(model, "backbone", model)
    fresh = type(backbone).from_config({**backbone.get_config(), **sizes})
    if backbone is model:
        return fresh
    config = {k: v for k, v in model.get_config().items() if k not in _NOT_ARGUMENTS}
    return type(model)(fresh, preprocessor=model.preprocessor, **config)


def copy_rows(old: dict, new: dict) -> LoadReport:
    """Copy variables; where the first axis has grown or shrunk, as many rows as fit.

    Args:
        old: variables by path.
        new: the same paths, of the same shapes but for the first axis.

    Returns:
        Every path as loaded, and as reshaped those of other shapes.
    """
    reshaped = []
    for path, variable in new.items():
        value = keras.ops.convert_to_numpy(old[path].value)
        shape = tuple(variable.shape)
        if value.shape != shape:
            reshaped.append(f"{path}: {value.shape} -> {shape}")
            value = value[: shape[0]]
        if len(value) < shape[0]:
            grown = keras.ops.convert_to_numpy(variable.value).copy()
            grown[: len(value)] = value
            value = grown
        give(variable, value)
    return LoadReport(loaded=tuple(new), reshaped=tuple(reshaped))
