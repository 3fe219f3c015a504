"""Variables under names that do not depend on where Keras put their layer."""

import keras
import numpy as np

from keras_bert3.checkpoints.blank import give
from keras_bert3.training import padding


def variables_by_path(backbone, heads=None) -> dict[str, keras.Variable]:
    """Name the weights of a backbone, and of heads on it.

    Keras prefixes a variable's path with whatever surrounded its layer when it was built. Here
    paths start below the backbone (`block_0/attention/query/kernel`) or at the head's name
    (`masked_lm_head/dense/kernel`). States of random generators are not weights and have no place
    here.

    Args:
        backbone: a built `Backbone`.
        heads: built layers by name, as `task.heads`.

    Returns:
        The variables by path, in the order of their creation.
    """
    named = {_below(backbone, weight): weight for weight in backbone.weights}
    for name, head in (heads or {}).items():
        named |= {f"{name}/{_below(head, weight)}": weight for weight in head.weights}
    return named


def _below(layer, weight) -> str:
    """Return the part of a variable's path that follows the name of `layer`.

    A backbone that stands in another has built itself before, and its paths are whole.
    """
    parts = weight.path.split("/")
    return "/".join(parts[parts.index(layer.name) + 1 if layer.name in parts else 0 :])


def assign(variable: keras.Variable, value: np.ndarray, path: str, source: str) -> None:
    """Give a variable a value of its own shape, cast to its own dtype.

    Raises:
        ValueError: if the shapes differ, naming both and where the value came from, or if the value
            is of whole numbers, which are a weight only together with the scale of a quantisation.
    """
    if value.dtype.kind in "iub":
        raise ValueError(
            f"Expected floating-point values for `{path}`. "
            f"Received: {value.dtype.name} from {source}"
        )
    value = padding.filled(variable, value)
    if tuple(value.shape) != tuple(variable.shape):
        raise ValueError(
            f"Expected shape {tuple(variable.shape)} for `{path}`. "
            f"Received: shape {tuple(value.shape)} from {source}"
        )
    give(variable, value)


def check_complete(report, heads, optional: tuple[str, ...], source) -> None:
    """Refuse a checkpoint that lacks a part of the backbone, or has a head in part.

    Args:
        report: of the load.
        heads: by name; a head that the checkpoint lacks altogether is nobody's concern here.
        optional: how paths start that a checkpoint may lack.
        source: where the checkpoint is, for the error.

    Raises:
        ValueError: naming what is missing.
    """
    begun = {_first(path) for path in report.loaded}
    missing = [
        path
        for path in report.newly_initialised
        if not path.startswith(optional) and (_first(path) not in heads or _first(path) in begun)
    ]
    if missing:
        raise ValueError(
            f"Expected every weight of the model in '{source}'. Received: none for "
            f"{', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}"
        )


def _first(path: str) -> str:
    return path.split("/")[0]
