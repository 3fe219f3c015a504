"""Folders that appear whole or not at all, and JSON files that name themselves when broken."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MARKS = ("bert_config.json", "params_shapes.json")
"""Files that no other folder than a checkpoint has."""
_ENTRIES = ("format", "registered_name", "model_type", "num_hidden_layers")
"""Entries of which the config.json of every checkpoint has one."""


@contextlib.contextmanager
def new_folder(folder: str | os.PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary sibling of `folder` to write into; rename it to `folder` at the end.

    If the body raises, the temporary folder is removed and what stood at `folder` is untouched.

    Args:
        folder: where the result shall stand.
        overwrite: replace a checkpoint folder that stands there.

    Raises:
        ValueError: if something stands there already and is not to be replaced, or is not a
            checkpoint at all.
    """
    target = Path(folder).resolve()
    _check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=target.parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
    ) as workspace:
        fresh = Path(workspace) / "new"
        fresh.mkdir()
        yield fresh
        if target.exists():
            target.rename(Path(workspace) / "old")
        fresh.rename(target)


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse a target that is a file, a folder in use, or (to overwrite) no checkpoint."""
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"Expected `folder` to be a folder. Received: the file '{target}'")
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise ValueError(
            "Expected an empty or new folder, or overwrite=True. "
            f"Received: '{target}', which holds files"
        )
    if not _is_checkpoint(target):
        raise ValueError(
            f"Expected a checkpoint to overwrite, with {' or '.join(_MARKS)} or a model's "
            f"config.json in it. Received: '{target}', which has none"
        )


def _is_checkpoint(folder: Path) -> bool:
    """Whether everything in a folder may go: a run's has a config.json too, and is precious."""
    if any((folder / mark).is_file() for mark in _MARKS):
        return True
    config = folder / "config.json"
    return config.is_file() and any(entry in read_json(config) for entry in _ENTRIES)


def read_json(path: Path) -> dict:
    """Read a JSON object.

    Raises:
        ValueError: naming the file, if it is missing, broken or not an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"Expected a JSON file at '{path}'. Received: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"Expected a JSON object in '{path}'. Received: {type(content).__name__}")
    return content


def write_json(path: Path, content: dict) -> None:
    """Write a JSON object, indented, for people to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
