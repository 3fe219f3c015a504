"""The folder a run leaves behind."""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras

from keras_bert3.version import __version__

_PACKAGES = ("keras", "numpy", "tokenizers", "jax", "jaxlib", "tensorflow", "torch")


@contextlib.contextmanager
def new_run(folder: str | Path, config: Any) -> Iterator[Path]:
    """Make the folder of a run, with `config.json` and `environment.json`, or go on with one.

    A folder that holds an unfinished run of the same settings is taken as it is; so a command that
    was stopped is simply given again. A run that fails before it has logged a result leaves no
    folder behind; one that ends leaves `finished.json`.

    Args:
        folder: does not exist, or is empty, or holds an unfinished run.
        config: a dataclass instance, the run's settings.

    Raises:
        ValueError: if the folder holds a finished run, one of other settings, one that another
            process is working on, or anything else.
    """
    folder = Path(folder)
    settings = json.loads(json.dumps(dataclasses.asdict(config)))
    goes_on = (folder / "config.json").exists()
    if goes_on:
        _check_same(folder, settings, _defaults(config))
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{_EXPECTED} Received: {folder}, which holds {_contents(folder)}")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        try:
            write_json(folder / "config.json", settings)
            write_json(folder / "environment.json", describe_environment())
            yield folder
            write_json(folder / "finished.json", {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})
        finally:
            if not goes_on and not (folder / "metrics.csv").exists():
                shutil.rmtree(folder, ignore_errors=True)


_EXPECTED = (
    "Expected the output directory to be new or empty, or to hold an unfinished run of the same "
    "settings, so that no other run is lost."
)


# A run may go on in another place and on other devices, with less memory or more.
_ELSEWHERE = {"output", "mesh", "processes", "remat"}


def _defaults(config: Any) -> dict[str, Any]:
    """What settings are where nothing is said of them, those without a default left out."""
    fields = [f for f in dataclasses.fields(config) if f.default is not dataclasses.MISSING]
    return json.loads(json.dumps({field.name: field.default for field in fields}))


def _check_same(folder: Path, settings: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Refuse a run that is finished or has other settings; where it lies does not matter.

    A setting that did not exist when the run began had what is now its default.
    """
    if (folder / "finished.json").exists():
        raise ValueError(f"{_EXPECTED} Received: {folder}, which holds config.json, a finished run")
    before = {**defaults, **json.loads((folder / "config.json").read_text(encoding="utf-8"))}
    names = sorted((set(before) | set(settings)) - _ELSEWHERE)
    other = [name for name in names if before.get(name) != settings.get(name)]
    if other:
        differences = ", ".join(f"{n} {before.get(n)} (now {settings.get(n)})" for n in other[:3])
        raise ValueError(
            f"{_EXPECTED} Received: {folder}, which holds config.json with {differences}"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder against other processes; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(fcntl, descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(fcntl, descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"{_EXPECTED} Received: {folder}, on which another process is working"
        ) from error


def _contents(folder: Path) -> str:
    if not folder.is_dir():
        return "a file"
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def describe_environment() -> dict[str, Any]:
    """Backend, its devices, the machine and the versions of what computes."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "keras_bert3": __version__,
        "backend": keras.backend.backend(),
        "devices": _devices(),
        "dtype_policy": keras.config.dtype_policy().name,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": versions,
    }


def _devices() -> list[str]:
    """Names of the devices; Keras lists none on PyTorch."""
    if keras.backend.backend() != "torch":
        return list(keras.distribution.list_devices())
    import torch

    count = torch.cuda.device_count()
    return [torch.cuda.get_device_name(i) for i in range(count)] or ["cpu:0"]


def write_json(path: Path, value: Any) -> None:
    """Write `value` under a temporary name, then rename."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)
