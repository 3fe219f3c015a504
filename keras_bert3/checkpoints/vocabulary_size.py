"""More rows for the vocabulary, wherever a model counts it."""

from keras_bert3.checkpoints.resized import copy_rows, rebuilt
from keras_bert3.checkpoints.variables import variables_by_path


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
        ValueError: if the vocabulary would shrink, or `multiple_of` is below 1.

    Example:
        >>> larger, report = resize_vocabulary(task, 30522 + 3, multiple_of=8)
    """
    if multiple_of < 1:
        raise ValueError(f"Expected multiple_of of at least 1. Received: multiple_of={multiple_of}")
    backbone = getattr(model, "backbone", model)
    size = -(-vocabulary_size // multiple_of) * multiple_of
    if size < backbone.vocabulary_size:
        raise ValueError(
            f"Expected vocabulary_size of at least {backbone.vocabulary_size}, the present one. "
            f"Received: vocabulary_size={vocabulary_size}"
        )
    larger = rebuilt(model, vocabulary_size=size)
    old, new = (
        variables_by_path(getattr(each, "backbone", each), getattr(each, "heads", {}))
        for each in (model, larger)
    )
    return larger, copy_rows(old, new)
