"""From a checkpoint folder of any known layout to a model, and from a model to our own layout.

`load_backbone` and `load_task` return the model alone; `read_backbone` and `read_task` return with
it a `LoadReport` of what became of every tensor.
"""

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import keras_bert3
from keras_bert3.backbones.backbone import Backbone
from keras_bert3.checkpoints import native, positions
from keras_bert3.checkpoints.blank import blank, without_values
from keras_bert3.checkpoints.description import Description, check_sizes
from keras_bert3.checkpoints.detect import reader_of
from keras_bert3.checkpoints.handles import local_folder
from keras_bert3.checkpoints.native import public_class
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import variables_by_path

_ANY_LAYER = ("name", "trainable", "dtype")
_LENGTH = "max_sequence_length"


def load_backbone(folder: str | os.PathLike, cls: type, **overrides):
    """Load a backbone with its weights; see `read_backbone`."""
    return read_backbone(folder, cls, **overrides)[0]


def read_backbone(folder: str | os.PathLike, cls: type, **overrides) -> tuple:
    """Load a backbone with its weights, and say what became of every tensor.

    Args:
        folder: a checkpoint of any known layout, or its name on a hub (see `local_folder`).
        cls: the class to return, or a base of it.
        overrides: constructor arguments that replace the stored ones. `dtype` is never stored:
            without it the global dtype policy holds. A `max_sequence_length` below the stored one
            cuts the table of positions, which the report names as reshaped.

    Returns:
        The backbone and a `LoadReport`.

    Raises:
        ValueError: if the folder holds no such backbone, or a file is missing, broken or of other
            shapes.
    """
    folder, reader, description = _described(folder)
    construct = _constructor(description, cls, overrides, folder)
    if stored := _stored_length(description, overrides):
        whole, report = read_backbone(folder, cls, **{**overrides, _LENGTH: stored})
        with blank(construct) as backbone:
            return backbone, _cut(whole, backbone, report)
    with blank(construct) as backbone:
        return backbone, reader.load_weights(folder, backbone, {})


def _described(name: str | os.PathLike) -> tuple[Path, ModuleType, Description]:
    """Return the folder a name stands for, the module that reads it, and what it says it holds."""
    folder = local_folder(name)
    reader = reader_of(folder)
    try:
        return folder, reader, reader.describe(folder)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(
            f"Expected the configuration of a model in '{folder}'. Received: {error!r}"
        ) from error


def _stored_length(description: Description, overrides: dict) -> int | None:
    """The checkpoint's number of positions where another is asked for."""
    stored = description.backbone_config.get(_LENGTH)
    return None if overrides.get(_LENGTH, stored) == stored else stored


def _cut(whole, short, report: LoadReport) -> LoadReport:
    """Copy what was loaded into a model of fewer positions."""
    return report + LoadReport(reshaped=positions.cut(whole, short).reshaped)


def load_task(folder: str | os.PathLike, cls: type, new_heads: tuple[str, ...] = (), **overrides):
    """Load a task with its backbone and heads; see `read_task`."""
    return read_task(folder, cls, new_heads, **overrides)[0]


def read_task(
    folder: str | os.PathLike, cls: type, new_heads: tuple[str, ...] = (), **overrides
) -> tuple:
    """Load a task with its backbone and heads, and say what became of every tensor.

    Args:
        folder: a checkpoint of any known layout, or its name on a hub (see `local_folder`).
        cls: the task to return, or a base of it. A folder that holds another task, or a backbone
            alone, still gives the backbone.
        new_heads: names of heads that start anew, whether the folder has weights for them or not.
            Heads that fine-tuning brings (`fine_tuned_heads`) need no mention where the folder
            holds another task or a backbone alone.
        overrides: constructor arguments that replace the stored ones: of the task, or else of its
            backbone, or else of its preprocessor. `preprocessor=None` does without the stored one.

    Returns:
        The task and a `LoadReport`.

    Raises:
        ValueError: if a head has no weights and is not in `new_heads`, or as `read_backbone`.
    """
    folder, reader, description = _described(folder)
    task_class, stored = _task_class(description, cls, folder)
    config = task_class.loaded_config(stored, _taken_by(task_class, overrides), new_heads)
    for_backbone, for_preprocessor = _divide_overrides(
        {name: value for name, value in overrides.items() if name not in config},
        public_class(description.backbone_class, Backbone),
        task_class.preprocessor_class,
    )
    construct = _constructor(description, Backbone, for_backbone, folder)
    whole = None
    if stored := _stored_length(description, for_backbone):
        for_whole = {**overrides, _LENGTH: stored, "preprocessor": None}
        whole, report = read_task(folder, cls, new_heads, **for_whole)
    with blank(construct) as backbone:
        if "preprocessor" not in config:
            config["preprocessor"] = _preprocessor(
                reader, folder, description, task_class, backbone, for_preprocessor
            )
            _check_vocabulary(config["preprocessor"], backbone, folder)
        with without_values():
            task = task_class(backbone, **config)
        if whole is None:
            return task, _load_task(reader, folder, description, task, new_heads)
        task.newly_initialised = report.newly_initialised
        return task, _cut(whole, task, report)


def _load_task(reader, folder: Path, description: Description, task, new_heads) -> LoadReport:
    """Fill a task from its checkpoint, all of it but the heads that start anew."""
    optional = _optional_heads(description, type(task))
    if description.task_class is not None:  # another task's weights, whatever their names
        new_heads = (*new_heads, *(n for n in optional if n in task.heads and n not in new_heads))
    known, fresh = _divide_heads(task, new_heads)
    report = reader.load_weights(folder, task.backbone, known)
    _check_heads(folder, task, report, [name for name in known if name not in optional])
    every_path = variables_by_path(task.backbone, fresh)
    paths = [path for path in every_path if path.split("/")[0] in fresh]
    report += LoadReport(newly_initialised=tuple(paths))
    task.newly_initialised = report.newly_initialised
    return report


def _optional_heads(description: Description, task_class: type) -> tuple[str, ...]:
    """The heads that start anew where the checkpoint has none: not those of its own task."""
    if description.task_class in {base.__name__ for base in task_class.__mro__}:
        return ()
    held = description.more_heads
    return () if held and set(held) <= set(task_class.head_names) else task_class.fine_tuned_heads


def _divide_overrides(overrides: dict, backbone_class: type, preprocessor_class: type) -> tuple:
    """What the backbone takes, or nobody, and what the preprocessor takes."""
    for_backbone = _taken_by(backbone_class, overrides)
    rest = {k: v for k, v in overrides.items() if k not in for_backbone and k != "tokenizer"}
    for_preprocessor = _taken_by(preprocessor_class, rest)
    return (
        {name: value for name, value in overrides.items() if name not in for_preprocessor},
        for_preprocessor,
    )


def read_tokenizer(folder: str | os.PathLike):
    """Load the tokenizer of a checkpoint of any known layout, or None where it has none."""
    folder, reader, description = _described(folder)
    return reader.load_tokenizer(folder, description)


def task_name(folder: str | os.PathLike) -> str | None:
    """Return the name of the task a checkpoint is of, or None for a backbone alone."""
    return _described(folder)[2].task_class


def save_backbone(backbone, folder: str | os.PathLike, overwrite: bool = False, tokenizer=None):
    """Write a backbone as a folder of our own layout; see `native.save`."""
    native.save(backbone, folder, overwrite, tokenizer)


def save_task(task, folder: str | os.PathLike, overwrite: bool = False, tokenizer=None):
    """Write a task, its backbone, heads and tokenizer as a folder of our own; see `native.save`."""
    native.save(task, folder, overwrite, tokenizer)


def _constructor(description: Description, cls: type, overrides: dict, folder: Path) -> Callable:
    """Return a function that builds the described backbone."""
    found = public_class(description.backbone_class, cls)
    if not issubclass(found, cls):
        raise ValueError(
            f"Expected a checkpoint of a `{cls.__name__}`. Received: one of a `{found.__name__}`"
        )
    unknown = sorted(set(overrides) - set(_taken_by(found, overrides)) - set(_ANY_LAYER))
    if unknown:
        raise ValueError(
            f"Expected overrides that `{found.__name__}` takes. Received: {', '.join(unknown)}"
        )
    config = {**description.backbone_config, **overrides}
    check_sizes(config, folder)

    def construct():
        try:
            return found(**config)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Expected settings of which a `{found.__name__}` can be made in '{folder}'. "
                f"Received: {' '.join(str(error).split())}"
            ) from error

    return construct


def _taken_by(cls: type, overrides: dict) -> dict:
    """The overrides that a constructor names among its parameters, or hands on to its base's."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == "keras":  # dtype, name: no part of a configuration
            break
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        names |= {parameter.name for parameter in parameters}
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return {name: value for name, value in overrides.items() if name in names}


def _task_class(description: Description, cls: type, folder: Path) -> tuple[type, dict]:
    """Choose between the stored task, with its configuration, and the one asked for."""
    if description.task_class is not None:
        stored = public_class(description.task_class, cls)
        if issubclass(stored, cls):
            return stored, description.task_config
        if issubclass(cls, stored):
            return cls, description.task_config
    if cls is keras_bert3.Task:
        raise ValueError(
            f"Expected the checkpoint of a task in '{folder}', or a class such as `MaskedLM` that "
            f"says which task to build. Received: a `{description.backbone_class}` alone and `Task`"
        )
    return cls, {}


def _preprocessor(
    reader, folder: Path, description: Description, task_class: type, backbone, overrides: dict
):
    """The stored preprocessor, or the task's usual one around the stored tokenizer, or None."""
    tokenizer = reader.load_tokenizer(folder, description)
    if tokenizer is None:
        return None
    is_own = description.task_class == task_class.__name__
    if description.preprocessor_class is None or not is_own:
        return task_class.usual_preprocessor(tokenizer, backbone, **overrides)
    stored = public_class(description.preprocessor_class, task_class.preprocessor_class)
    config = positions.fitted(description.preprocessor_config, backbone.max_sequence_length)
    return stored(tokenizer, **{**config, **overrides})


def _check_vocabulary(preprocessor, backbone, folder: Path) -> None:
    """Refuse a tokenizer with more tokens than the token table has rows; fewer are padding."""
    size = 0 if preprocessor is None else preprocessor.tokenizer.vocabulary_size
    if size > backbone.vocabulary_size:
        raise ValueError(
            f"Expected a tokenizer of at most {backbone.vocabulary_size} tokens in '{folder}', the "
            f"rows of the model's token table. Received: {size} tokens"
        )


def _divide_heads(task, new_heads: tuple[str, ...]) -> tuple[dict, dict]:
    """The heads to load, and those to start anew."""
    unknown = sorted(set(new_heads) - set(task.heads))
    if unknown:
        raise ValueError(
            f"Expected `new_heads` among {sorted(task.heads)}. Received: {', '.join(unknown)}"
        )
    known = {name: head for name, head in task.heads.items() if name not in new_heads}
    return known, {name: task.heads[name] for name in new_heads}


def _check_heads(folder: Path, task, report: LoadReport, known: Iterable[str]) -> None:
    """Refuse heads without weights."""
    starts = {path.split("/")[0] for path in report.newly_initialised}
    missing = ", ".join(repr(name) for name in known if name in starts)
    if missing:
        raise ValueError(
            f"Expected weights for every head of `{type(task).__name__}` in '{folder}', or "
            f"new_heads=({missing},) to start them anew. Received: none for {missing}"
        )
