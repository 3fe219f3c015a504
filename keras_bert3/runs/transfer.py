"""What fine-tuning owes to pretraining: GPT-1's analysis (Radford et al. 2018, section 5, table 5).

| variant        | network                                                | language model beside |
|----------------|--------------------------------------------------------|-----------------------|
| full           | pretrained                                             | yes                   |
| layers=k       | table and first k blocks pretrained, the rest new      | yes                   |
| no_auxiliary   | pretrained                                             | no                    |
| no_pretraining | all new                                                | yes                   |
| lstm           | one recurrent layer, pretrained where a preset is      | yes                   |

In every variant the special tokens and the classifier are new.
"""

import csv
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_bert3.backbones.lstm import LSTMBackbone
from keras_bert3.benchmarks import hub
from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.multiple_choice import ChoiceBenchmark
from keras_bert3.benchmarks.text_benchmark import TextBenchmark, write_whole
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.runs import fine_tuning_tasks as tasks
from keras_bert3.runs.fine_tuning import append_rows
from keras_bert3.runs.run_directory import write_json
from keras_bert3.runs.score_pictures import Point
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.gpt_fine_tuning import add_task_tokens

VARIANTS = ("full", "no_auxiliary", "no_pretraining", "lstm")


def expand_variants(variants: Iterable[str], num_layers: int) -> list[str]:
    """Write out `layers`, which is layers=0 up to all; refuse what the table above lacks.

    Raises:
        ValueError: naming it.
    """
    every = [f"layers={k}" for k in range(num_layers + 1)]
    variants = [v for name in variants for v in (every if name == "layers" else [name])]
    for variant in variants:
        kind, _, count = variant.partition("=")
        is_layers = kind == "layers" and count.isdigit() and int(count) <= num_layers
        if variant not in VARIANTS and not is_layers:
            raise ValueError(
                f"Expected variants among {', '.join(VARIANTS)}, layers and layers=k with k up to "
                f"{num_layers}. Received: {variant!r}"
            )
    return list(dict.fromkeys(variants))


def check(config, pretrained: CausalLM, lstm: CausalLM | None) -> None:
    """Refuse settings that could only fail later, before any work.

    Raises:
        ValueError: naming the setting.
    """
    if not hasattr(pretrained.backbone, "blocks"):
        raise ValueError(
            f"Expected a preset of a GPT-1. Received: one of {type(pretrained.backbone).__name__}"
        )
    expand_variants(config.variants, pretrained.backbone.num_layers)
    for task in (pretrained, lstm):
        longest = task.backbone.max_sequence_length if task else config.sequence_length
        if config.sequence_length > longest:
            raise ValueError(
                f"Expected sequence_length up to {longest}, the positions of the model. "
                f"Received: {config.sequence_length}"
            )
        if task and task.preprocessor is None:
            raise ValueError("Expected a preset with a tokenizer. Received: none")


def partly_pretrained(backbone, num_layers: int | None):
    """Make a new backbone of a kind, and copy the tables and the first blocks.

    Args:
        backbone: a pretrained `GPTBackbone` or `LSTMBackbone`.
        num_layers: blocks to copy; with -1 nothing is, the tables neither; with None everything is.

    Returns:
        A backbone of the same configuration.
    """
    made = type(backbone).from_config(backbone.get_config())
    count = -1 if num_layers is None else num_layers
    kept = {"embeddings", *(f"block_{i}" for i in range(count))} if count >= 0 else set()
    old = variables_by_path(backbone)
    for path, variable in variables_by_path(made).items():
        if num_layers is None or path.split("/")[0] in kept:
            variable.assign(old[path].value)
    return made


def make_task(
    variant: str, pretrained: CausalLM, benchmark: Any, sequence_length: int, lstm=None
) -> Any:
    """Build a variant's task of a benchmark, not compiled.

    Args:
        variant: see the table above.
        pretrained: a language model with a tokenizer.
        benchmark: an entry of `benchmarks.hub.BENCHMARKS`, of texts or multiple choice.
        sequence_length: tokens of a row.
        lstm: a language model around an `LSTMBackbone`; None: a new one, as wide.
    """
    cls: Any = tasks.task_class_of(benchmark, "gpt")
    source: CausalLM = pretrained
    count: int | None = None
    if variant == "lstm":
        source = lstm or _new_lstm(pretrained)
    elif variant == "no_pretraining":
        count = -1
    elif variant.startswith("layers="):
        count = int(variant.partition("=")[2])
    backbone = partly_pretrained(source.backbone, count)
    options: dict[str, Any] = {"auxiliary_lm_weight": 0.0 if variant == "no_auxiliary" else 0.5}
    if not isinstance(benchmark, ChoiceBenchmark):
        labels = list(benchmark.labels)
        options |= {"labels": labels} if labels else {"num_classes": 1}
    preprocessor = cls.preprocessor_class(source.preprocessor.tokenizer, sequence_length)
    return add_task_tokens(cls(backbone, preprocessor=preprocessor, **options))


def _new_lstm(pretrained: CausalLM) -> CausalLM:
    names = ("vocabulary_size", "hidden_dim", "dropout", "max_sequence_length", "initializer_range")
    backbone = LSTMBackbone(**{name: getattr(pretrained.backbone, name) for name in names})
    return CausalLM(backbone, pretrained.preprocessor)


def fine_tune(
    task: Any,
    benchmark: Any,
    training: Examples,
    validation: Examples,
    learning_rate: float,
    epochs: int,
    batch_size: int,
    seed: int,
) -> dict[str, float]:
    """Train on examples; return the benchmark's scores of the validation examples."""
    keras.utils.set_random_seed(seed)
    updates = epochs * -(-len(training) // batch_size)
    recipe = task.backbone.fine_tuning._replace(learning_rate=learning_rate)
    task.compile(optimizer=recipe.make(updates))
    labels = training.known_labels()
    task.fit(training.inputs, labels, batch_size=batch_size, epochs=epochs, verbose=2)
    return tasks.score(benchmark, validation, tasks.predict(task, benchmark, validation))


def read(config) -> tuple[Any, Examples, Examples]:
    """Find the benchmark of a run, and read what it trains on and what it scores.

    Raises:
        ValueError: for an unknown benchmark or one that GPT-1 has no task for, or a missing or
            broken file, or one without labels.
    """
    benchmark = hub.find(config.benchmark)
    tasks.task_class_of(benchmark, "gpt")
    training, validation = (benchmark.read(config.data, split) for split in ("train", "dev"))
    training.known_labels()
    tasks.check_scores(benchmark, validation)
    return benchmark, training.first(config.most or len(training)), validation


def guessing(benchmark: Any, examples: Examples) -> float | None:
    """What the most frequent label scores everywhere; None for a regression, which has none."""
    if isinstance(benchmark, TextBenchmark) and not benchmark.labels:
        return None
    labels = examples.known_labels()
    constant = Counter(labels).most_common(1)[0][0]
    scores = benchmark.score(examples, [constant] * len(labels))
    return scores[tasks.main_metric(scores)]


def compare(run: Path, config, data: tuple, pretrained: CausalLM, lstm=None) -> list[dict]:
    """Fine-tune every variant with every seed; those that `run/metrics.csv` has are done.

    Args:
        run: the folder of the run.
        config: see `recipes/transfer_analysis.py`.
        data: from `read`.
        pretrained: a language model with a tokenizer.
        lstm: see `make_task`.

    Returns:
        A row for each: `variant`, `seed`, `metric` and `score`.
    """
    benchmark, training, validation = data
    rows = _rows_of(run / "metrics.csv")
    done = {(row["variant"], row["seed"]) for row in rows}
    for variant in expand_variants(config.variants, pretrained.backbone.num_layers):
        for seed in range(config.seeds):
            if (variant, seed) in done:
                continue
            keras.utils.set_random_seed(seed)
            task = make_task(variant, pretrained, benchmark, config.sequence_length, lstm)
            numbers = config.learning_rate, config.epochs, config.batch_size, seed
            scores = fine_tune(task, benchmark, training, validation, *numbers)
            metric = tasks.main_metric(scores)
            row = {"variant": variant, "seed": seed, "metric": metric, "score": scores[metric]}
            append_rows(run / "metrics.csv", [row])
            rows.append(row)
            print(f"{variant}, seed {seed}: {metric} {scores[metric]:.4f}", flush=True)
    return rows


def _rows_of(path: Path) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{**row, "seed": int(row["seed"]), "score": float(row["score"])} for row in rows]


def means_of(rows: Sequence[dict]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation (0 for one run) of each variant's score."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["variant"], []).append(row["score"])
    return {
        name: (statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
        for name, values in scores.items()
    }


def layer_curve(means: dict[str, tuple[float, float]], num_layers: int) -> list[Point]:
    """The score over the blocks that were transferred (figure 2, left); all of them is `full`."""
    points = {num_layers: means["full"]} if "full" in means else {}
    for name, mean in means.items():
        if name.startswith("layers="):
            points[int(name.partition("=")[2])] = mean
    return [(k, *points[k]) for k in sorted(points)]


def save(run: Path, rows: list[dict], guess: float | None) -> None:
    """Write `results.json` and `results.md`, and print the table."""
    means = means_of(rows)
    lines = [f"| variant | {rows[0]['metric']} | deviation | runs |", "|---|---|---|---|"]
    for name, (mean, deviation) in means.items():
        runs = sum(row["variant"] == name for row in rows)
        spread = f"{deviation:.4f}" if runs > 1 else ""
        lines.append(f"| {name} | {mean:.4f} | {spread} | {runs} |")
    if guess is not None:
        lines.append(f"| the most frequent label | {guess:.4f} | | |")
    write_json(run / "results.json", {"rows": rows, "guessing": guess})
    write_whole(run / "results.md", "\n".join(lines) + "\n")
    print("\n".join(lines))
