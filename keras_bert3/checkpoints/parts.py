"""The parts of a model that go into a checkpoint, of a backbone as of a task."""

from typing import Any


def parts_of(model, tokenizer=None) -> tuple[Any, dict, Any]:
    """Return the backbone, the heads by name and the tokenizer.

    Args:
        model: a `Backbone`, which has no heads, or a `Task`.
        tokenizer: what to return instead of the task's own; a backbone has none.
    """
    if not hasattr(model, "backbone"):
        return model, {}, tokenizer
    own = getattr(model.preprocessor, "tokenizer", None)
    return model.backbone, model.heads, own if tokenizer is None else tokenizer
