"""More rows for the vocabulary, wherever a model counts it."""

import keras

from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import variables_by_path

_NOT_ARGUMENTS = ("backbone", "preprocessor")


def resize_vocabulary(model, vocabulary_size: int, multiple_of: int = 1) -> tuple:
    """Make a copy of a model with a larger vocabulary.

    The token table and the masked-LM bias grow together. Their old rows stay as they are; new rows
    start as in a new model. Everything else is copied.

    Args:
        model: a `Backbone`, or a `Task`, whose preprocessor the copy shares.
        vocabulary_size: number of token ids, not below the present one.
        multiple_of: round the size up to a multiple of this; 8 suits GPUs' matrix units.

    Returns:
        The copy, and a `LoadReport` whose `reshaped` names what has grown.

    Raises:
        ValueError: if the vocabulary would shrink.

    Example:
        >>> larger, report = resize_vocabulary(task, 30522 + 3, multiple_of=8)
    """
    backbone = getattr(model, "backbone", model)
    size = -(-vocabulary_size // multiple_of) * multiple_of
    if size < backbone.vocabulary_size:
        raise ValueError(
            f"Expected vocabulary_size of at least {backbone.vocabulary_size}, the present one. "
            f"Received: vocabulary_size={vocabulary_size}"
        )
    config = {**backbone.get_config(), "vocabulary_size": size}
    larger = type(backbone).from_config(config)
    if backbone is model:
        return larger, _copy(variables_by_path(model), variables_by_path(larger))
    config = {k: v for k, v in model.get_config().items() if k not in _NOT_ARGUMENTS}
    task = type(model)(larger, preprocessor=model.preprocessor, **config)
    return task, _copy(
        variables_by_path(backbone, model.heads), variables_by_path(larger, task.heads)
    )


def _copy(old: dict, new: dict) -> LoadReport:
    """Copy variables; where the first axis has grown, into its first rows."""
    reshaped = []
    for path, variable in new.items():
        value = keras.ops.convert_to_numpy(old[path].value)
        if value.shape != tuple(variable.shape):
            reshaped.append(f"{path}: {value.shape} -> {tuple(variable.shape)}")
            grown = keras.ops.convert_to_numpy(variable.value).copy()
            grown[: len(value)] = value
            value = grown
        variable.assign(value)
    return LoadReport(loaded=tuple(new), reshaped=tuple(reshaped))
