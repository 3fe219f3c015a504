"""Fewer or more positions than a checkpoint has.

A table of learned positions can be cut without changing what the model makes of any sequence that
still fits. More rows are another matter: nothing has taught them anything.
"""

from collections.abc import Mapping

import keras

from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.resized import copy_rows, rebuilt
from keras_bert3.checkpoints.variables import variables_by_path

TABLES = ("embeddings/position/embeddings", "enhanced_mask_decoder/embeddings")
"""Variables with a row for each position."""

_LENGTHS = ("sequence_length", "max_sequence_length")


def resize_positions(model, max_sequence_length: int) -> tuple:
    """Make a copy of a model with another number of positions.

    Fewer: the rows that remain are the first ones, and shorter sequences are worth what they were.
    More: the new rows start as in a new model, and have to be trained.

    Args:
        model: a `Backbone` or a `Task`. The copy's preprocessor cuts texts to the new length where
            it let longer ones pass.
        max_sequence_length: number of positions.

    Returns:
        The copy, and a `LoadReport` whose `reshaped` names the tables.

    Example:
        >>> longer, report = resize_positions(task, 1024)
    """
    copy = rebuilt(model, max_sequence_length=max_sequence_length)
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        config = {k: v for k, v in preprocessor.get_config().items() if k != "tokenizer"}
        if (fit := fitted(config, max_sequence_length)) != config:
            copy.preprocessor = type(preprocessor)(preprocessor.tokenizer, **fit)
    return copy, copy_rows(_variables(model), _variables(copy))


def cut(whole, short) -> LoadReport:
    """Copy a model into one like it that has fewer positions.

    Raises:
        ValueError: if it has more.
    """
    old, new = _variables(whole), _variables(short)
    _check_no_longer(old, new)
    return copy_rows(old, new)


def _check_no_longer(old: Mapping, new: Mapping) -> None:
    """Refuse tables that have grown."""
    for path in TABLES:
        if path in old and new[path].shape[0] > old[path].shape[0]:
            raise ValueError(
                f"Expected max_sequence_length of at most {old[path].shape[0]}, the rows of the "
                f"checkpoint's `{path}`; `keras_bert3.checkpoints.resize_positions` adds untrained "
                f"ones to a loaded model. Received: max_sequence_length={new[path].shape[0]}"
            )


def fitted(config: dict, max_sequence_length: int) -> dict:
    """Return a preprocessor's arguments, its lengths no greater than `max_sequence_length`."""
    longer = {name for name in _LENGTHS if (config.get(name) or 0) > max_sequence_length}
    return {**config, **dict.fromkeys(longer, max_sequence_length)}


def _variables(model) -> dict[str, keras.Variable]:
    return variables_by_path(getattr(model, "backbone", model), getattr(model, "heads", {}))
