"""Our own folder: config.json, model.weights.h5, a file for each head, the tokenizer's files.

`checksums.json` tells whether the bytes of the weights are those that were written.
"""

import hashlib
import math
import os
from pathlib import Path

import h5py
import keras
import ml_dtypes  # noqa: F401  (teaches numpy the name bfloat16)
import numpy as np

import keras_bert3
from keras_bert3.checkpoints import folders
from keras_bert3.checkpoints.blank import settle
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.parts import parts_of
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.version import __version__

FORMAT = "keras_bert3"
CHECKSUMS = "checksums.json"
SHARD_SIZE = 10.0
"""Gigabytes (2^30 bytes) above which weights are spread over several files."""

# How a model was being used, not what it is.
_NOT_STORED = ("name", "trainable", "dtype")


def describe(folder: Path) -> Description:
    """Read which classes the folder's `config.json` names, and how to construct them."""
    content = folders.read_json(folder / "config.json")
    task, preprocessor, tokenizer = (
        content.get(name, {}) for name in ("task", "preprocessor", "tokenizer")
    )
    try:
        backbone = content["backbone"]
        return Description(
            backbone_class=backbone["class"],
            backbone_config=dict(backbone["config"]),
            task_class=task.get("class"),
            task_config=dict(task.get("config", {})),
            preprocessor_class=preprocessor.get("class"),
            preprocessor_config=dict(preprocessor.get("config", {})),
            tokenizer_class=tokenizer.get("class"),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"Expected '{folder / 'config.json'}' to hold the class and config of a backbone. "
            f"Received: {error!r}"
        ) from error


def load_tokenizer(folder: Path, description: Description):
    """Load the tokenizer stored in the folder, or None."""
    if description.tokenizer_class is None:
        return None
    return public_class(description.tokenizer_class).load(folder)


def load_weights(folder: Path, backbone, heads: dict) -> LoadReport:
    """Fill the backbone, and the heads the folder has a file for."""
    _check_bytes(folder)
    settle(backbone, keras.initializers.Zeros())  # Keras's own loader overwrites values
    report = _load_layer(_weights_file(folder, "model"), backbone, variables_by_path(backbone))
    for name, head in heads.items():
        path = _weights_file(folder, name)
        variables = tuple(f"{name}/{path}" for path in variables_by_path(head))
        if path.exists():
            report += _load_layer(path, head, variables)
        else:
            report += LoadReport(newly_initialised=variables)
    return report + LoadReport(unexpected=_other_files(folder, {"model", *heads}))


def _other_files(folder: Path, known: set[str]) -> tuple[str, ...]:
    """Weights of heads that nobody asked for."""
    files = [*folder.glob("*.weights.h5"), *folder.glob("*.weights.json")]
    return tuple(sorted(file.name for file in files if file.name.split(".")[0] not in known))


def _weights_file(folder: Path, name: str) -> Path:
    """The index of the shards where there is one, else the single file."""
    index = folder / f"{name}.weights.json"
    return index if index.exists() else folder / f"{name}.weights.h5"


def _load_layer(path: Path, layer, names) -> LoadReport:
    """Load one weights file into one built layer, all of it or with an error that names it."""
    if not path.exists():
        raise ValueError(f"Expected weights at '{path}'. Received: no such file")
    try:
        if path.suffix == ".h5":
            _check_count(path, len(layer.weights))
        keras.saving.load_weights(layer, path)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"Expected '{path}' to hold the weights of `{type(layer).__name__}`, whole and of its "
            f"shapes. Received: {reason[:300]}"
        ) from error
    return LoadReport(loaded=tuple(names))


def _check_bytes(folder: Path) -> None:
    """Refuse weights that are not those written; without checksums there is nothing to tell."""
    if not (folder / CHECKSUMS).exists():
        return
    digests = folders.read_json(folder / CHECKSUMS)
    for path in sorted(folder.glob("*.weights.*")):
        if path.is_file() and path.name in digests and _digest(path) != digests[path.name]:
            raise ValueError(
                f"Expected '{path}' to hold the weights that were saved there, of the checksum in "
                f"{CHECKSUMS}; if it was replaced on purpose, delete that file. "
                f"Received: {path.stat().st_size} other bytes"
            )


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_count(path: Path, expected: int) -> None:
    """Refuse a file with more or fewer arrays than the layer has weights."""
    found = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, item: found.append(1) if isinstance(item, h5py.Dataset) else None)
    if len(found) != expected:
        raise ValueError(f"{len(found)} arrays for a layer with {expected} weights")


def save(
    model,
    folder: str | os.PathLike,
    overwrite: bool = False,
    tokenizer=None,
    shard_size: float = SHARD_SIZE,
) -> None:
    """Write a backbone or a task as a folder of ours.

    Weights alone are written: no optimizer, which starts fresh in a model loaded from the folder.

    Args:
        model: a `Backbone`, or a `Task` with its heads, preprocessor and tokenizer.
        folder: where; it must not hold files yet, unless `overwrite`.
        overwrite: replace the checkpoint that stands there.
        tokenizer: to go with a backbone; a task brings its own.
        shard_size: gigabytes; weights above this size are spread over files of at most it.

    Raises:
        ValueError: if `folder` holds files.
    """
    backbone, heads, tokenizer = parts_of(model, tokenizer)
    content: dict = {"format": FORMAT, "version": __version__, "backbone": _stored(backbone)}
    if model is not backbone:
        content["task"] = _stored(model)
        if model.preprocessor is not None:
            content["preprocessor"] = _stored(model.preprocessor)
    if tokenizer is not None:
        content["tokenizer"] = {"class": type(tokenizer).__name__}
    with folders.new_folder(folder, overwrite) as fresh:
        folders.write_json(fresh / "config.json", content)
        for name, layer in {"model": backbone, **heads}.items():
            _save_layer(fresh, name, layer, shard_size)
        weights = sorted(fresh.glob("*.weights.*"))
        folders.write_json(fresh / CHECKSUMS, {file.name: _digest(file) for file in weights})
        if tokenizer is not None:
            tokenizer.save(fresh)


def _stored(part) -> dict:
    """The class and the constructor's arguments, without parts that are stored beside it."""
    beside = (*_NOT_STORED, "backbone", "preprocessor", "tokenizer")
    config = {name: value for name, value in part.get_config().items() if name not in beside}
    return {"class": type(part).__name__, "config": config}


def _save_layer(folder: Path, name: str, layer, shard_size: float) -> None:
    """Write one layer's weights, in one file where they fit."""
    gigabytes = sum(_bytes(weight) for weight in layer.weights) / 2**30
    if gigabytes > shard_size:
        file = folder / f"{name}.weights.json"
        keras.saving.save_weights(layer, file, max_shard_size=shard_size)
    else:
        keras.saving.save_weights(layer, folder / f"{name}.weights.h5")


def _bytes(weight) -> int:
    return math.prod(weight.shape) * np.dtype(weight.dtype).itemsize


def public_class(name: str, own: type | None = None) -> type:
    """Find a class by its public name in `keras_bert3`; nothing else is ever imported.

    Args:
        name: the class's name.
        own: a class of the caller's, found by its own name without being public.

    Raises:
        ValueError: if there is no such class.
    """
    if own is not None and name == own.__name__:
        return own
    found = getattr(keras_bert3, name) if name in keras_bert3.__all__ else None
    if not isinstance(found, type):
        raise ValueError(f"Expected the name of a public class of keras_bert3. Received: {name!r}")
    return found
