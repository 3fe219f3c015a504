"""From a task's preset to a SavedModel, on the TensorFlow backend: what `export` runs.

    KERAS_BACKEND=tensorflow python -m keras_bert3.serving.worker FOLDER

`FOLDER` holds `job.json`, the task in `preset/` and, in `probe.npz`, inputs with the outputs that
the backend which trained it gives for them. The result is written to `FOLDER/version`; for a job
that names a `format`, see `portable`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from keras_bert3.serving.graph_library import tensorflow

NO_TENSORFLOW = 3
"""Exit status where TensorFlow is not installed."""
TOLERANCE = 1e-4
"""Largest difference from the other backend, relative to the largest output: float32's order."""


def run(folder: Path) -> dict[str, Any]:
    """Rebuild the task, check it, and save it.

    Returns:
        What `export.json` says: versions, signatures, operations, the check's difference.

    Raises:
        ValueError: if the outputs differ from the probe's, or an operation is not allowed.
    """
    import keras

    from keras_bert3.serving import portable

    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        return (portable.write if "format" in job else _export)(folder, job)
    finally:
        keras.config.set_dtype_policy(policy)


def _export(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    import keras

    tf = tensorflow()

    from keras_bert3.checkpoints import preset
    from keras_bert3.serving import beside, dense
    from keras_bert3.serving.operations import check_operations, operations_of
    from keras_bert3.serving.signatures import Signatures
    from keras_bert3.tasks.task import Task

    task, _ = preset.read_task(folder / "preset", Task)
    dense.prepare(task)
    made = Signatures(task, job["pair"])
    difference = check(made, folder / "probe.npz")
    functions = made.functions()
    operations = set()
    for function in functions.values():
        operations |= operations_of(function.graph.as_graph_def())
    check_operations(operations)
    module = tf.Module()
    # nothing but what the functions read: no optimizer, no state of dropout, each weight once
    module.weights = _variables(functions)
    module.resources = made.resources()
    version = folder / "version"
    tf.saved_model.save(module, str(version), signatures=functions)
    report = {
        **job,
        "task": type(task).__name__,
        "backbone": type(task.backbone).__name__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "parameters": sum(int(weight.shape.num_elements()) for weight in module.weights),
        "largest_difference": difference,
        "operations": sorted(operations),
        "signatures": beside.describe(functions),
    }
    beside.write(version, task, report)
    return report


def check(made, probe: Path) -> float:
    """Return the largest difference between outputs and the probe's.

    Raises:
        ValueError: where it is more than float32 explains, or a shape differs.
    """
    import keras
    import numpy as np

    with np.load(probe) as arrays:
        inputs = {n[3:]: arrays[n] for n in arrays.files if n.startswith("in_")}
        expected = [arrays[f"out_{i}"] for i in range(len(arrays.files) - len(inputs))]
    found = [np.asarray(value) for value in keras.tree.flatten(made.raw(**inputs))]
    if [value.shape for value in found] != [value.shape for value in expected]:
        raise ValueError(
            f"Expected outputs of shapes {[value.shape for value in expected]}. "
            f"Received: {[value.shape for value in found]}"
        )
    difference = max(float(np.abs(a - b).max()) for a, b in zip(found, expected, strict=True))
    scale = max(1.0, *(float(np.abs(value).max()) for value in expected))
    if not difference <= TOLERANCE * scale:
        raise ValueError(
            f"Expected the outputs of the training backend within {TOLERANCE * scale:.0e}. "
            f"Received: a difference of {difference:.2e}, so nothing is exported"
        )
    return difference


def _variables(functions) -> list:
    """The variables that some function reads, each once."""
    found = {}
    for function in functions.values():
        found |= {variable.ref(): variable for variable in function.graph.variables}
    return list(found.values())


def main(arguments: list[str]) -> int:
    """Run as a process of its own."""
    try:
        import tensorflow  # noqa: F401
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return NO_TENSORFLOW
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    (folder,) = map(Path, arguments)
    try:
        report = run(folder)
    except ValueError as error:
        (folder / "error.txt").write_text(str(error), encoding="utf-8")
        return 1
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
