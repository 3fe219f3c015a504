"""Latency of a served BERT-base: this package, transformers on PyTorch, ONNX Runtime, OpenVINO.

    python benchmarks/serving.py --rounds 10
    python benchmarks/serving.py --sides ours transformers --core 1
    python benchmarks/serving.py --processor-time
        Where other programs use the machine too: time that each side computed, not that passed.

The same classifier (random weights, Hugging Face's own) four times, 128 tokens a row, in float32.
Each side is a process of its own, pinned to one core with one thread, and all are asked in turn, so
that what else the machine does falls on all alike: read the ratios. Ours is the SavedModel run by
TensorFlow's C library with XLA off, as TensorFlow Serving runs it, with ids for strings, as the
others have. ONNX Runtime and OpenVINO read what `torch.onnx` writes of the transformers model.

Also printed: how long the export took, and how large its variables are. Needs torch, transformers,
tensorflow and, for their sides, onnx, onnxscript, onnxruntime and openvino.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIDES = ("ours", "transformers", "onnxruntime", "openvino")
BATCHES, LENGTH = (1, 8), 128
VOCABULARY = 30522


def ids(rows: int) -> np.ndarray:
    """Draw the token ids of a batch."""
    return np.random.default_rng(rows).integers(0, VOCABULARY, (rows, LENGTH))


def ours(folder: Path):
    """Load the SavedModel."""
    from keras_bert3.serving.session import SavedModelSession

    session = SavedModelSession(folder / "served" / "1", threads=1)

    def ask(tokens):
        rows = len(tokens)
        inputs = {
            "token_ids": tokens.astype("int32"),
            "segment_ids": np.zeros((rows, LENGTH), "int32"),
            "lengths": np.full(rows, LENGTH, "int32"),
        }
        return session.run("tokens", inputs, ["scores"])["scores"]

    return ask


def transformers(folder: Path):
    """Load the model with Hugging Face transformers."""
    import torch
    from transformers import BertForSequenceClassification

    torch.set_num_threads(1)
    model = BertForSequenceClassification.from_pretrained(folder / "published").eval()

    def ask(tokens):
        with torch.inference_mode():
            return model(**_torch_inputs(tokens)).logits.numpy()

    return ask


def onnxruntime(folder: Path):
    """Load the ONNX file with ONNX Runtime."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    file = str(folder / "model.onnx")
    session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda tokens: session.run(None, _onnx_inputs(tokens))[0]


def openvino(folder: Path):
    """Load the ONNX file with OpenVINO, told to compute in float32."""
    import openvino as runtime

    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = runtime.Core().compile_model(str(folder / "model.onnx"), "CPU", settings)
    return lambda tokens: model(_onnx_inputs(tokens))[0]


def _torch_inputs(tokens):
    import torch

    mask = torch.ones(tokens.shape, dtype=torch.int64)
    return {"input_ids": torch.from_numpy(tokens), "attention_mask": mask}


def _onnx_inputs(tokens):
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}


def write_published(folder: Path, layers: int) -> None:
    """Write a classifier of BERT-base's widths as transformers does, and as ONNX."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=layers, num_labels=3, initializer_range=0.05)
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(folder / "published")
    dims = {0: torch.export.Dim("rows"), 1: torch.export.Dim("length")}
    torch.onnx.export(
        model,
        (),
        str(folder / "model.onnx"),
        kwargs=_torch_inputs(ids(2)),
        input_names=["input_ids", "attention_mask"],
        dynamo=True,
        dynamic_shapes={"input_ids": dims, "attention_mask": dims},
        verbose=False,
    )


def write_served(folder: Path) -> None:
    """Export the same classifier with this package; print how long that takes and its size."""
    from keras_bert3 import TextClassifier
    from keras_bert3.serving.export import export_saved_model

    task = TextClassifier.from_preset(folder / "published", preprocessor=None)
    begin = time.perf_counter()
    version = export_saved_model(task, folder / "served")
    seconds = time.perf_counter() - begin
    parameters = json.loads((version / "export.json").read_text("utf-8"))["parameters"]
    size = sum(file.stat().st_size for file in (version / "variables").iterdir())
    print(
        f"export {seconds:.1f} s; variables {size / 2**20:.1f} MiB, "
        f"{size / parameters / 4:.4f} of 4 bytes x {parameters:,} parameters",
        flush=True,
    )


def answer(side: str, folder: Path, processor_time: bool) -> None:
    """Be one side: read a number of rows a line, write milliseconds; first the outputs."""
    clock = time.process_time if processor_time else time.perf_counter
    ask = globals()[side](folder)
    print(json.dumps([np.asarray(ask(ids(rows))).tolist() for rows in BATCHES]), flush=True)
    for line in sys.stdin:
        tokens = ids(int(line))
        begin = clock()
        ask(tokens)
        print(1000 * (clock() - begin), flush=True)


def start(side: str, folder: Path, core: int, *options: str) -> subprocess.Popen:
    """Start a side, pinned to a core."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        [sys.executable, __file__, "--side", side, "--folder", str(folder), *options],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    return process


def compare(sides: list[str], folder: Path, rounds: int, core: int, *options: str) -> None:
    """Ask all sides in turn and print the table."""
    processes = {side: start(side, folder, core, *options) for side in sides}
    try:
        first = {side: _read(side, process) for side, process in processes.items()}
        times = {(side, rows): [] for side in sides for rows in BATCHES}
        for _ in range(rounds):
            for side, rows in times:
                process = processes[side]
                process.stdin.write(f"{rows}\n")
                process.stdin.flush()
                times[side, rows].append(_read(side, process))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    print("| runtime | largest difference | " + " | ".join(f"batch {b}" for b in BATCHES) + " |")
    for side in sides:
        pairs = zip(first[side], first[sides[0]], strict=True)
        difference = max(np.abs(np.array(a) - np.array(b)).max() for a, b in pairs)
        cells = [_cell(times[side, rows], times[sides[0], rows]) for rows in BATCHES]
        print(f"| {side} | {difference:.1e} | " + " | ".join(cells) + " |")


def _read(side: str, process: subprocess.Popen):
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"Expected an answer of {side}. Received: none; is it installed?")
    return json.loads(line)


def _cell(times: list[float], reference: list[float]) -> str:
    """Median and least milliseconds, and the median ratio to the first side, round by round."""
    ratio = statistics.median(a / b for a, b in zip(times, reference, strict=True))
    return f"{statistics.median(times):.0f} ms, least {min(times):.0f}, ratio {ratio:.2f}"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--layers", type=int, default=12, help="fewer to see whether all runs")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="for the models; kept, and used again")
    chosen = parser.parse_args()
    if chosen.side:
        answer(chosen.side, chosen.folder, chosen.processor_time)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not (folder / "model.onnx").exists():
            write_published(folder, chosen.layers)
        if not (folder / "served").exists():
            write_served(folder)
        options = ["--processor-time"] * chosen.processor_time
        compare(chosen.sides, folder, chosen.rounds, chosen.core, *options)


if __name__ == "__main__":
    main()
