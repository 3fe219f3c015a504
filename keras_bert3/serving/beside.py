"""What stands beside a SavedModel: vocabulary, warm-up, batching, a report and a card."""

from pathlib import Path
from typing import Any

from keras_bert3.checkpoints.folders import write_json
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.messages import ModelSpec, PredictRequest
from keras_bert3.serving.warm_up import FILE, write_request

WARM_UP_LENGTHS = (16, 128, 512)
"""Tokens of the rows that a server runs before it answers anyone."""
BATCHING = """\
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 64 }
num_batch_threads { value: 2 }
pad_variable_length_inputs: true
"""


def describe(functions) -> dict[str, Any]:
    """Name inputs and outputs of signatures with dtypes and shapes, None for any size."""
    return {
        name: {
            "inputs": {k: _spec(v) for k, v in function.structured_input_signature[1].items()},
            "outputs": {k: _spec(v) for k, v in function.structured_outputs.items()},
        }
        for name, function in functions.items()
    }


def _spec(tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype.name, "shape": tensor.shape.as_list()}


def write(version: Path, task, report: dict[str, Any]) -> None:
    """Write everything into the folder of a version.

    Args:
        version: the folder, with its SavedModel.
        task: what was exported.
        report: for `export.json`.
    """
    write_json(version / "export.json", report)
    (version / "README.md").write_text(_card(report), encoding="utf-8")
    (version / "batching_params.pbtxt").write_text(BATCHING, encoding="utf-8")
    if task.preprocessor is not None:
        task.preprocessor.tokenizer.save(version / "assets.extra" / "tokenizer")
    (version / FILE).parent.mkdir(exist_ok=True)
    _write_warm_up(version / FILE, task, report)


def _write_warm_up(path: Path, task, report: dict[str, Any]) -> None:
    """Write a request for each signature and length, as the server's warm-up reads them."""
    tf = tensorflow()

    longest = task.backbone.max_sequence_length or WARM_UP_LENGTHS[-1]
    lengths = sorted({min(length, longest) for length in WARM_UP_LENGTHS})
    with tf.io.TFRecordWriter(str(path)) as records:
        for signature, description in report["signatures"].items():
            for length in lengths:
                arrays = {
                    name: _warm_up_value(name, spec, length, task)
                    for name, spec in description["inputs"].items()
                }
                spec = ModelSpec(report["name"], None, signature)
                records.write(write_request(PredictRequest(spec, arrays)))


def _warm_up_value(name: str, spec: dict[str, Any], length: int, task):
    """One row, of `length` tokens or about as many words."""
    import numpy as np

    sizes = [size or 1 for size in spec["shape"]]
    if spec["dtype"] == "string":
        mask = getattr(getattr(task.preprocessor, "tokenizer", None), "mask_id", None)
        token = "" if mask is None else task.preprocessor.tokenizer.id_to_token(mask)
        words = " ".join([token, *["a"] * (length // 2)]).strip()
        return np.full(sizes, words, object)
    if name == "lengths":
        return np.full(sizes, length, "int32")
    return np.zeros([*sizes[:-1], length], "int32")


def _card(report: dict[str, Any]) -> str:
    """A page for whoever finds the folder."""
    lines = [
        f"# {report['name']}",
        "",
        f"A `{report['task']}` on a `{report['backbone']}`, {report['parameters']:,} parameters, "
        f"float32; trained on {report['trained_on']}, exported by keras_bert3 "
        f"{report['keras_bert3']} with TensorFlow {report['tensorflow']}.",
        f"Its outputs differ from the training backend's by at most "
        f"{report['largest_difference']:.1e}.",
        "",
        "| signature | inputs | outputs |",
        "|---|---|---|",
    ]
    for signature, sides in report["signatures"].items():
        cells = [", ".join(f"`{n}` {_shape(s)}" for n, s in sides[side].items()) for side in sides]
        lines.append(f"| `{signature}` | {' | '.join(cells)} |")
    lines += ["", f"Runs on any server with: {', '.join(report['operations'])}."]
    lines += ["", "Platforms: any. No operation names a device but the CPU of its host.", ""]
    return "\n".join(lines)


def _shape(spec: dict[str, Any]) -> str:
    sizes = ", ".join("any" if size is None else str(size) for size in spec["shape"])
    return f"{spec['dtype']} [{sizes}]"
