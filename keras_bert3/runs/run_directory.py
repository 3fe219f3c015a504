"""The folder a run leaves behind."""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras

from keras_bert3.version import __version__

_PACKAGES = ("keras", "numpy", "tokenizers", "jax", "jaxlib", "tensorflow", "torch")


@contextlib.contextmanager
def new_run(folder: str | Path, config: Any) -> Iterator[Path]:
    """Make the folder of a new run, with `config.json` and `environment.json`.

    A run that fails before it has logged a result leaves no folder behind.

    Args:
        folder: must not exist, or be empty.
        config: a dataclass instance, the run's settings.

    Raises:
        ValueError: if the folder holds anything, such as another run.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            "Expected the output directory to be new or empty, so that no other run is lost. "
            f"Received: {folder}, which holds {_contents(folder)}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_json(folder / "config.json", dataclasses.asdict(config))
        write_json(folder / "environment.json", describe_environment())
        yield folder
    finally:
        if not (folder / "metrics.csv").exists():
            shutil.rmtree(folder, ignore_errors=True)


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
