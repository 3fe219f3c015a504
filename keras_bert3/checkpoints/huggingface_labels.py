"""What Hugging Face's config.json says of the heads of fine-tuned models."""

from typing import Any

WITH_CLASSES = ("TextClassifier", "TokenClassifier")
"""Our tasks whose classes config.json counts and names."""
WITH_DROPOUT = (*WITH_CLASSES, "MultipleChoice")
_GENERIC = "LABEL_"
_DEFAULT_COUNT = 2


def task_config(config: dict, task_class: str | None, dropout_key: str | None = None) -> dict:
    """Read the constructor arguments that a task's head needs.

    Args:
        config: their config.json.
        task_class: our task.
        dropout_key: their entry for the dropout before the head, where the family has one; it
            counts where it is not null.

    Returns:
        `num_classes`, `labels` and `dropout`, as far as they are told.
    """
    found: dict[str, Any] = {}
    if task_class in WITH_DROPOUT and config.get(dropout_key) is not None:
        found["dropout"] = config[dropout_key]
    if task_class in WITH_CLASSES:
        names = _names(config)
        found["num_classes"] = len(names) or config.get("num_labels", _DEFAULT_COUNT)
        found["labels"] = names if _are_names(names) else None
    return found


def _names(config: dict) -> list[str]:
    """The names in the order of their numbers; none where those have gaps."""
    names = {int(number): str(name) for number, name in (config.get("id2label") or {}).items()}
    return [names[i] for i in range(len(names))] if set(names) == set(range(len(names))) else []


def _are_names(names: list[str]) -> bool:
    """Whether they say more than "LABEL_0", which transformers writes where nobody named any."""
    generic = all(name == f"{_GENERIC}{i}" for i, name in enumerate(names))
    return not generic and len(set(names)) == len(names)


def entries(task, dropout_key: str | None = None) -> dict:
    """Write what `task_config` reads: for a backbone, or a task without such a head, nothing."""
    written: dict[str, Any] = {}
    dropout = getattr(task, "dropout", None)
    backbone = getattr(task, "backbone", None)
    if backbone is None:
        return written
    if dropout_key is not None and isinstance(dropout, float | int):
        written[dropout_key] = None if dropout == backbone.dropout else dropout
    count = getattr(task, "num_classes", None)
    if count is not None:
        names = task.labels or [f"{_GENERIC}{i}" for i in range(count)]
        written["id2label"] = {str(i): name for i, name in enumerate(names)}
        written["label2id"] = {name: i for i, name in enumerate(names)}
    if count == 1:
        written["problem_type"] = "regression"
    return written
