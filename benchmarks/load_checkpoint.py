"""Seconds and memory to load BERT from safetensors: ours and Hugging Face transformers', in turn.

    KERAS_BACKEND=torch python benchmarks/load_checkpoint.py
    KERAS_BACKEND=jax python benchmarks/load_checkpoint.py --rounds 5

Writes a BERT base with its pretraining heads (random weights, 440 MB) into a temporary folder.

First what a program waits for that loads one model: from the start of a fresh Python process to the
loaded model, both sides in turn. Much of it is imports, those that transformers puts off until the
model is asked for among them.

Then loading alone, again and again in a process that has everything imported: each side has a
process of its own and loads once for its imports and the disk cache; then both load in
turn, A B A B. transformers maps the file and reads a weight when it is first used, hence the second
figure: with one forward pass over eight tokens, after which every weight has been read (on JAX and
TensorFlow ours is compiled in it, so that there the figure is for the model called as it is).

transformers loads as it does by default, in float32, and copies nothing: its weights are the mapped
pages of the file. Ours on PyTorch does the same, with kernels that are transposed views. JAX and
TensorFlow cannot: their arrays have one order, and must start at addresses that a safetensors file
seldom offers, so that each kernel is transposed into memory of its own. There the time is that of
writing the file's size into fresh memory, half of it the
operating system's, which clears the pages.

The processors' time is printed beside the wall's, which other work on the machine lengthens.

Memory is the largest resident set of a process that loads once, less what it had before, divided by
the size of the file.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDES = ("ours", "transformers")
NEW = "new process, import and load"


def ours(folder: str):
    """Return functions that load with keras_bert3 and run the model."""
    import keras
    import numpy as np

    from keras_bert3 import MaskedLM

    ids = np.ones((1, 8), "int32")

    def run(model):
        outputs = model({"token_ids": ids, "padding_mask": ids})
        return keras.ops.convert_to_numpy(outputs["masked_lm"])

    return lambda: MaskedLM.from_preset(folder, preprocessor=None), run


def transformers(folder: str):
    """Return functions that load with transformers and run the model."""
    os.environ.setdefault("USE_TF", "0")
    import torch
    from transformers import BertForPreTraining

    def run(model):
        with torch.inference_mode():
            return model(input_ids=torch.ones(1, 8, dtype=torch.long)).prediction_logits.numpy()

    return lambda: BertForPreTraining.from_pretrained(folder).eval(), run


def resident() -> int:
    """The largest resident set so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(side: str, folder: str, warm: str) -> None:
    """Load whenever a line comes in; answer with seconds and memory, as JSON."""
    load, run = {"ours": ours, "transformers": transformers}[side](folder)
    load_small, run_small = {"ours": ours, "transformers": transformers}[side](warm)
    run_small(load_small())
    for _ in sys.stdin:
        before, started, busy = resident(), time.perf_counter(), time.process_time()
        model = load()
        loaded, most = time.perf_counter() - started, resident() - before
        worked = time.process_time() - busy
        run(model)
        ran = time.perf_counter() - started
        answer = {
            "load": loaded,
            "load, processors' time": worked,
            "load and run": ran,
            "bytes": most,
        }
        del model
        print(json.dumps(answer), flush=True)


def start_and_load(side: str, folder: str) -> None:
    """Load once in this process, say so, and tell the processors' time since it began."""
    load, _ = {"ours": ours, "transformers": transformers}[side](folder)
    model = load()
    print(time.process_time(), flush=True)
    del model


def measure_processes(rounds: int, folder: Path) -> dict[str, list[dict]]:
    """Start a process for each side in turn; the first of each, which fills caches, is left out."""
    answers: dict[str, list[dict]] = {side: [] for side in SIDES}
    for _ in range(rounds + 1):
        for side in SIDES:
            command = [sys.executable, __file__, "--once", side, str(folder)]
            started = time.perf_counter()
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout
                worked = float(process.stdout.readline())
                seconds = time.perf_counter() - started
            answers[side].append({NEW: seconds, f"{NEW}, processors' time": worked})
    return {side: values[1:] for side, values in answers.items()}


def write(folder: Path, **sizes) -> None:
    """Save a random BERT of theirs."""
    script = (
        "import sys, transformers; transformers.BertForPreTraining(transformers.BertConfig("
        f"**{sizes!r})).save_pretrained(sys.argv[1])"
    )
    environment = {**os.environ, "USE_TF": "0"}
    command = [sys.executable, "-c", script, str(folder)]
    subprocess.run(command, check=True, env=environment, capture_output=True)


def measure(rounds: int, folder: Path, warm: Path) -> dict[str, list[dict]]:
    """Ask both sides in turn; the first answer of each, which knows the memory, stands apart."""
    workers = {
        side: subprocess.Popen(
            [sys.executable, __file__, "--worker", side, str(folder), str(warm)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side in SIDES
    }
    answers: dict[str, list[dict]] = {side: [] for side in SIDES}
    for _ in range(rounds + 1):
        for side, worker in workers.items():
            assert worker.stdin and worker.stdout
            worker.stdin.write("\n")
            worker.stdin.flush()
            answers[side].append(json.loads(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    return answers


def tell(answers: dict[str, list[dict]]) -> None:
    """Print the medians of each figure in seconds, and their ratio."""
    for figure in (name for name in answers["ours"][0] if name != "bytes"):
        medians = {s: statistics.median(a[figure] for a in answers[s]) for s in SIDES}
        ratio = medians["ours"] / medians["transformers"]
        each = ", ".join(f"{side} {seconds:.2f} s" for side, seconds in medians.items())
        print(f"{figure}: {each}, ratio {ratio:.2f}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worker", nargs=3, metavar=("SIDE", "FOLDER", "WARM"))
    parser.add_argument("--once", nargs=2, metavar=("SIDE", "FOLDER"))
    arguments = parser.parse_args()
    if arguments.once:
        return start_and_load(*arguments.once)
    if arguments.worker:
        return work(*arguments.worker)
    with tempfile.TemporaryDirectory() as workspace:
        folder, warm = Path(workspace) / "base", Path(workspace) / "warm"
        write(folder)
        write(warm, num_hidden_layers=1, hidden_size=12, intermediate_size=8)
        processes = measure_processes(arguments.rounds, folder)
        answers = measure(arguments.rounds, folder, warm)
        size = (folder / "model.safetensors").stat().st_size
    print(f"backend {os.environ.get('KERAS_BACKEND', 'default')}, {size / 1e6:.0f} MB, medians")
    tell(processes)
    tell({side: values[1:] for side, values in answers.items()})
    peaks = ", ".join(f"{side} {answers[side][0]['bytes'] / size:.2f}" for side in SIDES)
    print(f"memory, in sizes of the file: {peaks}")


if __name__ == "__main__":
    main()
