"""Fine-tuning on a benchmark: a grid of learning rates, restarts, the best of all on dev.

    for each learning rate, for each seed:
        load the checkpoint, train, score the development set after each epoch,
        go back to the weights of the best epoch
    the run with the best score is kept, and answers the test file

Devlin et al. 2018, section 4.1: "we selected the best fine-tuning learning rate ... on the Dev
set", and "ran several random restarts and selected the best model on the Dev set". A restart has
another order of the examples, other dropout and another new head.
"""

import csv
import dataclasses
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert3.benchmarks import hub
from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.text_benchmark import TextBenchmark
from keras_bert3.objectives.sift import SiFT
from keras_bert3.runs import fine_tuning_ensemble
from keras_bert3.runs import fine_tuning_tasks as tasks
from keras_bert3.runs.fine_tuning_settings import paper_settings
from keras_bert3.runs.run_directory import write_json
from keras_bert3.training.callbacks import NaNGuard
from keras_bert3.training.low_rank import enable_lora


class Splits(NamedTuple):
    """The examples of a run; `test` is None where there is no such file."""

    training: Examples
    validation: Examples
    test: Examples | None


def settle(config: Any) -> Any:
    """Fill in what a run leaves open with what the papers set, and refuse what cannot work.

    Args:
        config: a dataclass instance, see `recipes/finetune.py`.

    Returns:
        A copy with every setting.

    Raises:
        ValueError: naming the benchmark, checkpoint or setting.
    """
    benchmark = hub.find(config.benchmark)
    if "train" not in getattr(benchmark, "files", {}):
        raise ValueError(
            f"Expected a benchmark with a training set. Received: {config.benchmark!r}, which is "
            "scored with a model of another"
        )
    if config.data is not None and not Path(config.data).is_dir():
        raise ValueError(f"Expected `data` to be a folder. Received: {config.data!r}")
    origin = tasks.origin_of(config.preset)
    tasks.task_class_of(benchmark, origin.family)
    papers = paper_settings(origin.family, config.benchmark, origin.hidden_dim)
    given = dataclasses.asdict(config)
    config = dataclasses.replace(
        config, **{name: value for name, value in papers._asdict().items() if given[name] is None}
    )
    _check_numbers(config)
    runs = len(config.learning_rates) * config.seeds
    fine_tuning_ensemble.check(benchmark, config.ensemble, runs)
    if config.class_weights and not getattr(benchmark, "labels", ()):
        raise ValueError(
            f"Expected a benchmark with classes to weigh. Received: {config.benchmark!r}"
        )
    return config


def _check_numbers(config: Any) -> None:
    limits = {
        "learning_rates": bool(config.learning_rates) and min(config.learning_rates) > 0,
        "batch_size": config.batch_size >= 1,
        "epochs": config.epochs >= 1,
        "seeds": config.seeds >= 1,
        "patience": config.patience is None or config.patience >= 1,
        "most": config.most is None or config.most >= 1,
        "frozen_layers": config.frozen_layers is None or config.frozen_layers >= 0,
        "lora_rank": config.lora_rank is None or config.lora_rank >= 1,
        "sift": config.sift >= 0,
    }
    for name, holds in limits.items():
        if not holds:
            raise ValueError(
                "Expected counts from 1, rates above 0, no negative weight. "
                f"Received: {name}={getattr(config, name)}"
            )


def read_splits(config: Any) -> Splits:
    """Read all files of a run, or fetch them by name where it has no folder.

    Raises:
        ValueError: for a missing or broken file, or a split without labels.
    """
    benchmark = hub.find(config.benchmark)
    training = read(config, benchmark, "train", config.training)
    validation = read(config, benchmark, "dev", config.validation)
    training.known_labels()
    tasks.check_scores(benchmark, validation)
    has_test = config.test or has_file(config.data, benchmark, "test")
    test = read(config, benchmark, "test", config.test) if has_test else None
    return Splits(training.first(config.most or len(training)), validation, test)


def read(config: Any, benchmark: Any, split: str, file: str | None = None) -> Examples:
    """Read a split from its file, from the folder of the data, or by name."""
    options = {}
    if config.quoted and isinstance(benchmark, TextBenchmark):
        options["is_quoted"] = True
    if config.whole_documents and hasattr(benchmark, "kinds"):
        options["whole_documents"] = True
    if file is None and config.data is None:
        return hub.fetch(config.benchmark, split)
    return benchmark.read(file or config.data, split, **options)


def has_file(folder: str | None, benchmark: Any, split: str) -> bool:
    """Whether a folder has the file of a split."""
    names = benchmark.files.get(split, ())
    return folder is not None and any((Path(folder) / name).exists() for name in names)


class BestEpoch(keras.callbacks.Callback):
    """Score after each epoch, and keep the weights of the best.

    Args:
        score: a function of nothing that returns scores.
        patience: epochs without a better score after which training stops; None: never.
    """

    def __init__(self, score, patience: int | None = None):
        super().__init__()
        self.score = score
        self.patience = patience
        self.rows: list[dict[str, float]] = []
        self.best: dict[str, float] = {}
        self.weights: list[np.ndarray] = []

    def on_epoch_begin(self, epoch, logs=None):
        """Start the clock."""
        self.started = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        """Stop the clock and score."""
        seconds = time.perf_counter() - self.started
        scores = self.score()
        main = tasks.main_metric(scores)
        loss = float((logs or {}).get("loss", float("nan")))
        row = {"epoch": epoch + 1, "loss": loss, **scores, "seconds": seconds}
        self.rows.append(row)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, dev {main} {scores[main]:.4f}", flush=True)
        if not self.best or scores[main] > self.best[main]:
            self.best, self.weights = row, self.model.get_weights()
        elif self.patience is not None and epoch + 1 - self.best["epoch"] >= self.patience:
            self.model.stop_training = True


def train_once(config: Any, splits: Splits, learning_rate: float, seed: int) -> tuple[Any, list]:
    """Train from the checkpoint, and go back to the best epoch.

    Returns:
        The task, and a row of scores for each epoch.
    """
    keras.utils.set_random_seed(seed)
    benchmark = hub.find(config.benchmark)
    task = tasks.load_task(config.preset, benchmark, config.sequence_length)
    if hasattr(task, "null_threshold"):
        task.null_threshold = None  # chosen anew
    freeze(task, config.frozen_layers)
    if config.lora_rank:
        enable_lora(task.backbone, config.lora_rank)
    batches = training_batches(task, config, splits.training, seed)
    recipe = task.backbone.fine_tuning._replace(learning_rate=learning_rate)
    task.compile(
        recipe.make(config.epochs * len(batches)),
        adversarial=SiFT(weight=config.sift) if config.sift else None,
    )

    def score():
        predicted = tasks.predict(task, benchmark, splits.validation)
        return tasks.score(benchmark, splits.validation, predicted)

    best = BestEpoch(score, config.patience)
    task.fit(batches, epochs=config.epochs, callbacks=[NaNGuard(), best], verbose=0)
    task.set_weights(best.weights)
    if getattr(benchmark, "has_null", False):
        task.null_threshold = best.best["best_f1_threshold"]
    return task, best.rows


def training_batches(task: Any, config: Any, examples: Examples, seed: int) -> Any:
    """Batches of text for `fit`, in an order of the seed."""
    order = np.random.default_rng(seed).permutation(len(examples))
    columns = tuple([column[i] for i in order] for column in examples.columns)
    labels = [examples.known_labels()[i] for i in order]
    weights = balanced_weights(labels) if config.class_weights else None
    texts = columns if len(columns) == 2 else columns[0]
    return task.batches(
        texts, labels, weights, batch_size=config.batch_size, by_length=config.by_length
    )


def balanced_weights(labels: list) -> np.ndarray:
    """Weights with which every class counts as much as any other: n / (classes count(label)).

    Example: `balanced_weights(["a", "b", "b", "b"])` is `[2, 2/3, 2/3, 2/3]`.
    """
    counts = Counter(labels)
    return np.array([len(labels) / (len(counts) * counts[y]) for y in labels], "float32")


def freeze(task: Any, count: int | None) -> None:
    """Keep the embeddings and the first `count` blocks as they are; None keeps nothing.

    Raises:
        ValueError: for more blocks than there are.
    """
    if count is None:
        return
    blocks = task.backbone.blocks
    if count > len(blocks):
        raise ValueError(f"Expected frozen_layers up to {len(blocks)}. Received: {count}")
    for layer in (task.backbone.embeddings, *blocks[:count]):
        layer.trainable = False


def search(folder: Path, config: Any, splits: Splits) -> list[dict[str, Any]]:
    """Train with every learning rate and seed; the best task is saved as `folder/preset`.

    Runs that an earlier process finished are not done again.

    Args:
        folder: of the run; gets `metrics.csv`, a row an epoch, `runs.json`, `preset` and, for an
            ensemble, `outputs`.
        config: as `settle` returns it.
        splits: the examples.

    Returns:
        The best epoch of each run, with its learning rate and seed.
    """
    file = folder / "runs.json"
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    done = {(row["learning_rate"], row["seed"]) for row in rows}
    for learning_rate in config.learning_rates:
        for seed in range(config.seed, config.seed + config.seeds):
            if (learning_rate, seed) in done:
                continue
            print(f"\nlearning rate {learning_rate:g}, seed {seed}", flush=True)
            task, epochs = train_once(config, splits, learning_rate, seed)
            main = tasks.main_metric(epochs[0])
            best = max(epochs, key=lambda row: row[main])
            if all(best[main] > row[main] for row in rows):
                task.save_to_preset(folder / "preset", overwrite=(folder / "preset").exists())
            run = {"learning_rate": learning_rate, "seed": seed}
            if config.ensemble:
                fine_tuning_ensemble.keep_outputs(
                    folder, run, task, hub.find(config.benchmark), splits
                )
            append_rows(folder / "metrics.csv", [{**run, **row} for row in epochs])
            rows.append({**run, **best})
            write_json(file, rows)
    return rows


def append_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to a CSV file; the file is replaced as a whole."""
    before = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            before = list(csv.DictReader(file))
    names = dict.fromkeys(name for row in [*before, *rows] for name in row)
    temporary = path.with_name(path.name + ".part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(names), restval="")
        writer.writeheader()
        writer.writerows([*before, *rows])
    temporary.replace(path)
