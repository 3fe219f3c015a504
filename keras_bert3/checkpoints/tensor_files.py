"""Tensors of a folder in Hugging Face's file forms, read one at a time."""

import dataclasses
import importlib
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes  # noqa: F401  (teaches numpy the name bfloat16)
import numpy as np
import safetensors

from keras_bert3.checkpoints import folders

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
FORMS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


@dataclasses.dataclass(frozen=True)
class TensorFiles:
    """Where every tensor is, and how to read it.

    Args:
        file_of: the file of each tensor.
        readers: for each file, a function from a tensor's name to its values.
    """

    file_of: dict[str, Path]
    readers: dict[Path, Callable[[str], np.ndarray]]

    def read(self, name: str) -> np.ndarray:
        """Read one tensor, half precision as float32."""
        value = self.readers[self.file_of[name]](name)
        is_half = value.dtype.name in ("float16", "bfloat16")
        return value.astype("float32") if is_half else value


def open_tensors(folder: Path) -> TensorFiles:
    """Open the weights of a folder, safetensors rather than pickled ones, whole or in shards.

    Raises:
        ValueError: if there are none, or a file is missing, broken or outside the folder.
    """
    form = next((form for form in FORMS if (folder / form).is_file()), None)
    if form is None:
        raise ValueError(f"Expected one of {', '.join(FORMS)} in '{folder}'. Received: none")
    if not form.endswith(".index.json"):
        names, read = _open(folder / form)
        return TensorFiles(dict.fromkeys(names, folder / form), {folder / form: read})
    file_of = _shards(folder / form)
    opened = {file: _open(file) for file in sorted(set(file_of.values()))}
    for name, file in file_of.items():
        if name not in opened[file][0]:
            raise ValueError(f"Expected `{name}` in '{file}', as '{form}' says. Received: no such")
    return TensorFiles(file_of, {file: read for file, (_, read) in opened.items()})


def _shards(index: Path) -> dict[str, Path]:
    """Read an index file: from tensors to files beside the index, and nowhere else."""
    weight_map = folders.read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"Expected a `weight_map` in '{index}'. Received: {weight_map!r}")
    for name in sorted({str(name) for name in weight_map.values()}):
        if Path(name).name != name or "\\" in name:
            raise ValueError(f"Expected files beside '{index}' in it. Received: {name!r}")
        if not (index.parent / name).is_file():
            raise ValueError(
                f"Expected the shard '{index.parent / name}', as '{index.name}' says. "
                "Received: no such file"
            )
    return {name: index.parent / file for name, file in weight_map.items()}


def _open(file: Path) -> tuple[set[str], Callable[[str], np.ndarray]]:
    """Return the names of a file's tensors and a function that reads one."""
    return _open_safetensors(file) if file.suffix == ".safetensors" else _open_torch(file)


def _open_safetensors(file: Path):
    """The library checks the file; its tensors are then views of the file, mapped into memory.

    The mapping is private: what is written to a tensor never reaches the file.
    """
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = set(opened.keys())
        entries, start = _safetensors_header(file)
        data = np.memmap(file, np.uint8, "c") if names else np.empty(0, np.uint8)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"Expected a whole safetensors file at '{file}'. Received: {error}"
        ) from error

    def read(name: str) -> np.ndarray:
        entry = entries[name]
        if entry["dtype"] not in _DTYPES:
            raise ValueError(
                f"Expected `{name}` in '{file}' of a dtype among {sorted(_DTYPES)}. "
                f"Received: {entry['dtype']}"
            )
        first, last = (start + offset for offset in entry["data_offsets"])
        values = np.asarray(data[first:last]).view(_DTYPES[entry["dtype"]])
        return values.reshape(entry["shape"])

    return names, read


def _safetensors_header(file: Path) -> tuple[dict, int]:
    """Return dtype, shape and place of each tensor, and where the values start."""
    with open(file, "rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        return json.loads(opened.read(size)), 8 + size


def _open_torch(file: Path):
    """Pickled weights, through PyTorch's loader that constructs tensors and nothing else."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ValueError(
            f"Expected PyTorch (pip install 'keras-bert3[torch]') to read '{file}', or the same "
            "weights as model.safetensors. Received: no module named torch"
        ) from error
    broken = (RuntimeError, pickle.UnpicklingError, EOFError, OSError, ValueError, KeyError)
    try:
        tensors = _load_torch(torch, file)
    except broken as error:
        raise ValueError(
            f"Expected PyTorch weights at '{file}', whole and of tensors alone. "
            f"Received: {_reason(error)}"
        ) from error
    if not isinstance(tensors, dict):
        raise ValueError(
            f"Expected a dict of tensors at '{file}'. Received: a {type(tensors).__name__}"
        )
    tensors = {name: value for name, value in tensors.items() if hasattr(value, "detach")}

    def read(name: str) -> np.ndarray:
        tensor = tensors[name].detach()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()

    return set(tensors), read


def _reason(error: Exception) -> str:
    """What PyTorch found, without its advice to load the file unsafely."""
    if isinstance(error, pickle.UnpicklingError):
        found = re.search(r"Unsupported [^.]*(\.\w+)*", str(error))
        return found[0] if found else "no file of PyTorch's, or one of other objects"
    return " ".join(str(error).split())[:300]


def _load_torch(torch, file: Path) -> dict:
    """Map the file into memory where its format allows it."""
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        return torch.load(file, map_location="cpu", weights_only=True)
