"""A task as one file for other runtimes: ONNX, or LiteRT (which was TensorFlow Lite).

Keras writes both from its TensorFlow backend, in a process of its own. It can write files that do
not run, or compute something else; so each is run by its own runtime, at several shapes, and stays
only if it answers what the backend that trained the task does.
"""

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.serving.outputs import takes_several_rows
from keras_bert3.tasks.text_classifier import TextClassifier
from keras_bert3.tasks.text_embedder import TextEmbedder

TASKS = (TextClassifier, TextEmbedder)
"""Whose outputs are one array."""
SHAPES = ((1, 16), (3, 9), (2, 1))
"""Rows and columns of the batches that are compared."""
TOLERANCE = 1e-5
"""Largest difference, relative to the largest output where that is above 1: float32's order."""
Run = Callable[[dict[str, np.ndarray]], np.ndarray]


class Format(NamedTuple):
    """One kind of file.

    Args:
        name: of the format, to Keras.
        extra: of this package, with what is needed.
        packages: which those are, the runtime last.
        load: makes of a file a function from inputs to the output.
    """

    name: str
    extra: str
    packages: tuple[str, ...]
    load: Callable[[str], Run]


def _load_onnx(file: str) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    return lambda inputs: session.run(None, {name: inputs[name] for name in names})[0]


def _load_litert(file: str) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=file).get_signature_runner()
    return lambda inputs: next(iter(runner(**inputs).values()))


FORMATS = {
    ".onnx": Format("onnx", "onnx", ("onnx", "tf2onnx", "onnxruntime"), _load_onnx),
    ".tflite": Format("litert", "litert", ("ai_edge_litert",), _load_litert),
}


def export_file(task, file: str | os.PathLike) -> float:
    """Write a task as an ONNX or LiteRT file.

    Args:
        task: a `TextClassifier` or `TextEmbedder`, trained on any backend; exported in float32.
        file: ending in .onnx or .tflite; one that is there is replaced.

    Returns:
        The largest difference from this backend's outputs that was found. The file takes
        `token_ids`, `padding_mask` and, for networks that know several segments, `segment_ids`,
        int32 `[b, q]` of any b and q, and gives the logits `[b, c]` or vectors `[b, w]`.

    Raises:
        ImportError: where a package is missing, naming the extra that brings it.
        ValueError: for another task or ending, or where the file does not run or its outputs
            differ. Nothing is left behind.

    Example:
        >>> export_file(task, "reviews.onnx")
        1.2e-07
    """
    from keras_bert3.serving.export import _run_apart, _write_job

    file = Path(file).resolve()
    chosen = _checked(task, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".export-") as workspace:
        folder = Path(workspace)
        # beside the file, so that it can be renamed and appears whole
        reference = _write_job(task, folder, {"file": file.name, "format": chosen.name})
        _run_apart(folder)
        made = folder / file.name
        difference = compare(chosen, made, batches(task), reference)
        made.replace(file)
    return difference


def _checked(task, file: Path) -> Format:
    """Find the format, and refuse what cannot be exported before anything is done."""
    if file.suffix not in FORMATS:
        raise ValueError(f"Expected a file of {' or '.join(FORMATS)}. Received: '{file.name}'")
    if not isinstance(task, TASKS) or takes_several_rows(task):
        names = " or ".join(cls.__name__ for cls in TASKS)
        raise ValueError(f"Expected a {names}. Received: {type(task).__name__}")
    chosen = FORMATS[file.suffix]
    missing = [name for name in chosen.packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"Expected what {file.suffix} files are written and checked with: "
            f"pip install 'keras-bert3[{chosen.extra}]'. Received: no {', '.join(missing)}"
        )
    return chosen


def batches(task) -> Iterator[dict[str, np.ndarray]]:
    """Draw batches of different shapes, rows of different lengths in each, padding at the ends."""
    backbone, rng = task.backbone, np.random.default_rng(1)
    for rows, columns in SHAPES:
        columns = min(columns, backbone.max_sequence_length or columns)
        lengths = rng.integers(1, columns + 1, (rows, 1))
        batch = {
            "token_ids": rng.integers(0, backbone.vocabulary_size, (rows, columns)),
            "padding_mask": np.arange(columns) < lengths,
        }
        if (backbone.num_segments or 0) > 1:
            batch["segment_ids"] = np.sort(rng.integers(0, 2, (rows, columns)), 1)
        yield {name: value.astype("int32") for name, value in batch.items()}


def compare(chosen: Format, file: Path, inputs, reference) -> float:
    """Return the largest difference between what a file and a task give.

    Raises:
        ValueError: if the file does not run, or differs by more than float32 explains.
    """
    import keras

    largest = 0.0
    runtime = chosen.packages[-1]
    with _errors_as(f"a file that {runtime} runs at every shape; Keras wrote another"):
        run = chosen.load(str(file))
        pairs = [(run(batch), reference(batch, training=False)) for batch in inputs]
    for found, expected in pairs:
        expected = keras.ops.convert_to_numpy(expected)
        difference = np.abs(found - expected).max() if found.shape == expected.shape else np.inf
        bound = TOLERANCE * max(1.0, np.abs(expected).max())
        if not difference <= bound:
            raise ValueError(
                f"Expected the outputs of the training backend within {bound:.0e}. Received: a "
                f"difference of {difference:.2e} at {expected.shape}, so nothing is exported"
            )
        largest = max(largest, float(difference))
    return largest


def write(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Write the file from a task's preset, on the TensorFlow backend: what the worker runs.

    Raises:
        ValueError: where Keras cannot.
    """
    import keras

    from keras_bert3.checkpoints import preset
    from keras_bert3.serving import dense
    from keras_bert3.tasks.task import Task

    task, _ = preset.read_task(folder / "preset", Task)
    if job["format"] == "onnx":  # which has no Erfc
        dense.prepare(task)
    names = next(batches(task))
    specs = {n: keras.layers.InputSpec("int32", (None, None), name=n) for n in names}
    with _errors_as(f"a task that Keras exports as {job['format']}"):
        file = str(folder / job["file"])
        task.export(file, job["format"], input_signature=[specs], verbose=False)
    return {}


@contextlib.contextmanager
def _errors_as(expected: str):
    """Say what was expected where something fails; converters' errors have no common base."""
    try:
        yield
    except Exception as error:
        message = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"Expected {expected}, so nothing is exported. "
            f"Received: {type(error).__name__}: {message}"
        ) from error
