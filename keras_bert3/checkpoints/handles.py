"""Folders by name: a path, `hf://owner/name` or `kaggle://owner/model/framework/variation`."""

import importlib
import os
from pathlib import Path

HUGGING_FACE = "hf://"
KAGGLE = "kaggle://"
# Never the same weights twice: pickled ones and other frameworks' stay where they are, unless there
# is nothing else.
_WITHOUT_WEIGHTS = ["*.json", "*.txt", "spm.model", "bpe_encoder.bin"]
_WANTED = [*_WITHOUT_WEIGHTS, "*.safetensors", "*.weights.h5"]
_PICKLED = [*_WITHOUT_WEIGHTS, "pytorch_model.bin", "pytorch_model-*.bin"]


def local_folder(preset: str | os.PathLike) -> Path:
    """Return the folder a preset stands for, downloaded where it is a name on a hub.

    Args:
        preset: a folder, `hf://owner/name`, `hf://owner/name@revision` or
            `kaggle://owner/model/framework/variation`.

    Raises:
        ValueError: if the hub does not have it or cannot be reached, listing what is at hand.
        ImportError: if the hub's client is not installed.
    """
    text = str(preset) if not isinstance(preset, os.PathLike) else ""
    if text.startswith(HUGGING_FACE):
        return _from_hugging_face(text)
    if text.startswith(KAGGLE):
        return _from_kaggle(text)
    return Path(preset)


def _from_hugging_face(handle: str) -> Path:
    hub = _client("huggingface_hub", handle)
    name, _, revision = handle.removeprefix(HUGGING_FACE).partition("@")
    arguments = {"repo_id": name, "revision": revision or None}
    try:
        folder = Path(hub.snapshot_download(**arguments, allow_patterns=_WANTED))
        if not any(any(folder.glob(weights)) for weights in ("*.safetensors", "*.weights.h5")):
            folder = Path(hub.snapshot_download(**arguments, allow_patterns=_PICKLED))
        return folder
    except Exception as error:  # the client's and its transport's errors have no common base
        raise _unknown(handle, error, _cached_hugging_face(hub)) from error


def _cached_hugging_face(hub) -> list[str]:
    try:
        repositories = hub.scan_cache_dir().repos
    except Exception:  # no cache yet, in whatever way the client says so
        return []
    return [f"{HUGGING_FACE}{r.repo_id}" for r in repositories if r.repo_type == "model"]


def _from_kaggle(handle: str) -> Path:
    hub = _client("kagglehub", handle)
    try:
        return Path(hub.model_download(handle.removeprefix(KAGGLE)))
    except Exception as error:  # the client's and its transport's errors have no common base
        raise _unknown(handle, error, _cached_kaggle()) from error


def _cached_kaggle() -> list[str]:
    default = Path.home() / ".cache" / "kagglehub"
    models = Path(os.environ.get("KAGGLEHUB_CACHE", default)) / "models"
    return [f"{KAGGLE}{path.relative_to(models).as_posix()}" for path in models.glob("*/*/*/*")]


def _client(module: str, handle: str):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Expected the package {module} for '{handle}': pip install {module}. Received: {error}"
        ) from error


def _unknown(handle: str, error: Exception, cached: list[str]) -> ValueError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    at_hand = ", ".join(sorted(cached)[:20]) or "nothing"
    return ValueError(
        f"Expected a model that can be reached or is at hand ({at_hand}). Received: '{handle}' "
        f"({reason})"
    )
