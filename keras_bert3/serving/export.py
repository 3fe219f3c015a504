"""Write a task, trained on any backend, as a SavedModel for TensorFlow Serving.

The task is saved, and rebuilt on the TensorFlow backend: in this process where that is the backend,
in another one otherwise. What the training backend answers for a few rows goes along, and nothing
is exported unless the rebuilt network answers the same.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert3.serving import worker
from keras_bert3.serving.outputs import takes_several_rows
from keras_bert3.serving.versions import versions
from keras_bert3.version import __version__

_PROBE_LENGTHS = (17, 9, 2)
"""Tokens of the rows that are compared; none as long as the next multiple of anything."""


def export_saved_model(
    task, directory: str | os.PathLike, pair: bool = False, name: str | None = None
) -> Path:
    """Write the next version of a task for TensorFlow Serving.

    Args:
        task: a `Task`, trained on any backend under any dtype policy; it is exported in float32.
        directory: of all versions of this model; the new one becomes `directory/1`, or one more
            than the largest number there.
        pair: whether `serving_default` takes a second text, `text_pair`, with each first one.
        name: of the model at the server; that of `directory` when None.

    Returns:
        The folder of the new version. It appears under its number only once it is whole, so that a
        server which watches `directory` never loads a part of it.

    Raises:
        ImportError: if TensorFlow is not installed.
        ValueError: if the task cannot be served, or TensorFlow's answers differ from this
            backend's. Nothing is left behind.

    Example:
        >>> export_saved_model(task, "saved_models/mnli", pair=True)
        PosixPath('saved_models/mnli/1')
    """
    directory = Path(directory).resolve()
    _check_directory(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # not a number, so no server looks at it
    with tempfile.TemporaryDirectory(dir=directory, prefix=".export-") as workspace:
        folder = Path(workspace)
        _write_job(task, folder, {"name": name or directory.name, "pair": pair})
        if keras.backend.backend() == "tensorflow":
            worker.run(folder)
        else:
            _run_apart(folder)
        return _publish(folder / "version", directory)


def _check_directory(directory: Path) -> None:
    """Refuse what a server could not read versions from."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"Expected a folder. Received: the file '{directory}'")
    if (directory / "saved_model.pb").exists():
        raise ValueError(
            f"Expected the folder above versions. Received: a version itself, '{directory}'"
        )


def _write_job(task, folder: Path, settings: dict[str, Any]):
    """Save the task, and its answers in float32 to a few rows; return it in float32."""
    task.save_to_preset(folder / "preset")
    policy = task.backbone.dtype_policy.name
    job = {
        **settings,
        "keras_bert3": __version__,
        "trained_on": keras.backend.backend(),
        "dtype_policy": policy,
    }
    inputs = probe_inputs(task)
    reference = task if policy == "float32" else _in_float32(task, folder / "preset")
    outputs = keras.tree.flatten(reference(_with_mask(inputs), training=False))
    arrays = {f"in_{key}": value for key, value in inputs.items()}
    arrays |= {f"out_{i}": keras.ops.convert_to_numpy(value) for i, value in enumerate(outputs)}
    np.savez(folder / "probe.npz", allow_pickle=False, **arrays)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return reference


def _in_float32(task, preset: Path):
    """Load the task again, computing in float32 whatever it was trained in."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        return type(task).from_preset(preset)
    finally:
        keras.config.set_dtype_policy(policy)


def probe_inputs(task) -> dict[str, np.ndarray]:
    """Draw rows of different lengths for a task: `token_ids`, `lengths`, `segment_ids` if any."""
    backbone, rng = task.backbone, np.random.default_rng(1)
    longest = min(_PROBE_LENGTHS[0], backbone.max_sequence_length or _PROBE_LENGTHS[0])
    lengths = np.minimum(np.array(_PROBE_LENGTHS, "int32"), longest)
    shape = (len(lengths), longest)
    inputs = {
        "token_ids": rng.integers(0, backbone.vocabulary_size, shape).astype("int32"),
        "lengths": lengths,
    }
    segments = backbone.num_segments or 0
    if segments > 1:
        inputs["segment_ids"] = np.sort(rng.integers(0, segments, shape), 1).astype("int32")
    if takes_several_rows(task):
        return {name: np.stack([value, value[::-1]], 1) for name, value in inputs.items()}
    return inputs


def _with_mask(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Lengths as a padding mask."""
    given = dict(inputs)
    columns = np.arange(given["token_ids"].shape[-1])
    given["padding_mask"] = columns < given.pop("lengths")[..., None]
    return given


def _run_apart(folder: Path) -> None:
    """Run the worker in a process with the TensorFlow backend, away from this one's accelerator."""
    root = str(Path(__file__).resolve().parents[2])
    environment = {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).strip(os.pathsep),
    }
    command = [sys.executable, "-m", "keras_bert3.serving.worker", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode == worker.NO_TENSORFLOW:
        raise ImportError(
            "Expected TensorFlow, which writes SavedModels: pip install 'keras-bert3[serving]'. "
            f"Received: {done.stderr.strip().splitlines()[-1]}"
        )
    if done.returncode:
        error = folder / "error.txt"
        if error.exists():
            raise ValueError(error.read_text(encoding="utf-8"))
        raise RuntimeError(f"Expected an export by TensorFlow. Received: {done.stderr[-2000:]}")


def _publish(version: Path, directory: Path) -> Path:
    """Give a whole version the next number; another export may take it first."""
    while True:
        target = directory / str(max(versions(directory), default=0) + 1)
        try:
            return version.rename(target)
        except OSError:
            if not target.exists():
                raise
