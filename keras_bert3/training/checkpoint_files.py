"""Checkpoints on disk: whole or absent, and known by their checksum to be what was written.

    checkpoints/step-00001000/state.safetensors    every array
                              checkpoint.json      step, notes, size and SHA-256 of the arrays

A checkpoint is written under another name, forced to the disk, and renamed. Whatever moment a
process or a machine dies at, a folder of the name `step-...` is whole; what bytes go bad later is
found by the checksum, and the checkpoint before is used instead.
"""

import hashlib
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np

ARRAYS, DESCRIPTION = "state.safetensors", "checkpoint.json"
_FORMAT = 1


class BrokenCheckpoint(ValueError):
    """A checkpoint that is not what was written."""


def write(folder: Path, step: int, arrays: dict[str, np.ndarray], notes: dict[str, Any]) -> Path:
    """Write a checkpoint; where there is one of this step, replace it.

    Args:
        folder: of all checkpoints; made where it is missing.
        step: updates taken.
        arrays: by name; bfloat16 is kept as its bits.
        notes: what else there is to keep, as JSON.

    Returns:
        The folder of the checkpoint.
    """
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    final = path_of(folder, step)
    part = folder / f".{final.name}.{uuid.uuid4().hex[:8]}.part"
    part.mkdir()
    try:
        data = save({name: _storable(array) for name, array in arrays.items()})
        description = {
            "format": _FORMAT,
            "step": step,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "notes": notes,
        }
        _write(part / ARRAYS, data)
        _write(part / DESCRIPTION, _signed(description))
        if final.exists():
            os.rename(final, part / "replaced")
        os.rename(part, final)
        _sync(folder)
        shutil.rmtree(final / "replaced", ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return final


def read(path: Path) -> tuple[dict[str, np.ndarray], int, dict[str, Any]]:
    """Read a checkpoint: its arrays, its step and its notes.

    Raises:
        BrokenCheckpoint: if anything in it differs from what was written.
    """
    from safetensors.numpy import load

    description = describe(path)
    try:
        data = (path / ARRAYS).read_bytes()
    except OSError as error:
        raise BrokenCheckpoint(f"{path.name}: {ARRAYS} cannot be read ({error})") from error
    if len(data) != description["bytes"]:
        raise BrokenCheckpoint(
            f"{path.name}: {ARRAYS} has {len(data):,} bytes instead of {description['bytes']:,}"
        )
    if hashlib.sha256(data).hexdigest() != description["sha256"]:
        raise BrokenCheckpoint(f"{path.name}: the checksum of {ARRAYS} is wrong")
    return load(data), description["step"], description["notes"]


def describe(path: Path) -> dict[str, Any]:
    """Read what a checkpoint says of itself, without its arrays.

    Raises:
        BrokenCheckpoint: if the description is missing or not what was written.
    """
    try:
        description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        signature = description.pop("signature")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BrokenCheckpoint(f"{path.name}: {DESCRIPTION} cannot be read ({error})") from error
    if json.loads(_signed(description))["signature"] != signature:
        raise BrokenCheckpoint(f"{path.name}: the checksum of {DESCRIPTION} is wrong")
    if description["format"] != _FORMAT:
        raise BrokenCheckpoint(
            f"{path.name}: format {description['format']}, where this version reads {_FORMAT}"
        )
    return description


def path_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return folder / f"step-{step:08d}"


def steps(folder: Path) -> list[int]:
    """The steps of which there is a checkpoint, in order."""
    return sorted(int(path.name[5:]) for path in folder.glob("step-*") if path.name[5:].isdigit())


def remove_all_but(folder: Path, kept: set[int]) -> None:
    """Remove other checkpoints, and what writers left that died."""
    for step in set(steps(folder)) - kept:
        shutil.rmtree(path_of(folder, step), ignore_errors=True)
    for left in folder.glob(".step-*.part"):
        shutil.rmtree(left, ignore_errors=True)


def _storable(array: np.ndarray) -> np.ndarray:
    """bfloat16 as its bits, which the reader knows from the variable it goes to."""
    array = np.asarray(array, order="C")
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _signed(description: dict[str, Any]) -> bytes:
    """The description as JSON, with the SHA-256 of the rest of it."""
    text = json.dumps(description, sort_keys=True)
    signature = hashlib.sha256(text.encode()).hexdigest()
    return (json.dumps({**json.loads(text), "signature": signature}, indent=2) + "\n").encode()


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
