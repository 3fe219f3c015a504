"""What fine-tuning runs leave behind: tables, a model card, the answers to the test file."""

import csv
import statistics
from pathlib import Path
from typing import Any

from keras_bert3.benchmarks import hub
from keras_bert3.benchmarks.examples import Examples
from keras_bert3.runs import fine_tuning, fine_tuning_ensemble
from keras_bert3.runs import fine_tuning_tasks as tasks
from keras_bert3.runs.run_directory import write_json
from keras_bert3.runs.score_pictures import draw_curves
from keras_bert3.version import __version__

ALSO = {"mnli": ("mnli_mismatched", "ax")}
"""Benchmarks without a training set: the model of another answers them, where the folder has their
files."""

_CARD = """# {name}

`{source}`, fine-tuned on {benchmark} by keras_bert3 {version}: {examples:,} examples, learning rate
{learning_rate:g}, batches of {batch_size}, {sequence_length} tokens, the best of {epochs} epochs
({epoch}), seed {seed}.

{table}
    import keras_bert3 as kb

    task = kb.{task}.from_preset("{name}")
"""


def summarize(rows: list[dict[str, Any]], main: str) -> list[dict[str, Any]]:
    """Median and spread over seeds, for each learning rate.

    Args:
        rows: a row for each run.
        main: the score to summarise.

    Returns:
        `learning_rate`, `runs`, `median`, `lowest`, `highest` and `deviation` (of a sample; None
        for one run).
    """
    table = []
    for rate in dict.fromkeys(row["learning_rate"] for row in rows):
        values = [row[main] for row in rows if row["learning_rate"] == rate]
        table.append(
            {
                "learning_rate": rate,
                "runs": len(values),
                "median": statistics.median(values),
                "lowest": min(values),
                "highest": max(values),
                "deviation": statistics.stdev(values) if len(values) > 1 else None,
            }
        )
    return table


def markdown(rows: list[dict[str, Any]], main: str) -> str:
    """The tables of a run: over learning rates, and the best run's scores.

    Example: a line for a learning rate reads `| 5e-05 | 3 | 0.8570 | 0.8511 | 0.8602 | 0.0046 |`.
    """
    best = max(rows, key=lambda row: row[main])
    lines = [
        f"| learning rate | runs | median {main} | lowest | highest | deviation |",
        "|---|---|---|---|---|---|",
    ]
    for row in summarize(rows, main):
        deviation = "" if row["deviation"] is None else f"{row['deviation']:.4f}"
        values = " | ".join(f"{row[name]:.4f}" for name in ("median", "lowest", "highest"))
        lines.append(f"| {row['learning_rate']:g} | {row['runs']} | {values} | {deviation} |")
    skipped = ("learning_rate", "seed", "epoch", "loss", "seconds")
    lines += ["", "| development set, best run | |", "|---|---|"]
    lines += [f"| {k} | {v:.4f} |" for k, v in best.items() if k not in skipped and "/" not in k]
    return "\n".join(lines) + "\n"


def report(folder: Path, config: Any, splits: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer the test files with the best model; write `results.json`, `results.md` and the card.

    `curves.png` shows the score of each run after each epoch.

    Returns:
        What `results.json` holds.
    """
    main = tasks.main_metric(rows[0])
    best = max(rows, key=lambda row: row[main])
    task = load_best(folder, config)
    results: dict[str, Any] = {
        "benchmark": config.benchmark,
        "metric": main,
        "best": best,
        "learning_rates": summarize(rows, main),
        "runs": rows,
        "seconds_an_epoch": statistics.median(row["seconds"] for row in rows),
        "more": answer_test_files(folder, config, splits.test, task),
    }
    if config.ensemble:
        benchmark = hub.find(config.benchmark)
        results["ensemble"] = fine_tuning_ensemble.answer_together(
            folder, rows, config.ensemble, benchmark, splits
        )
    draw_curves(folder / "curves.png", curves(folder), {}, ("epoch", main))
    table = markdown(rows, main)
    if config.ensemble:
        table += f"\nThe best {config.ensemble} together: {main} {results['ensemble'][main]:.4f}\n"
    (folder / "results.md").write_text(table, encoding="utf-8")
    card = _card(folder, config, splits, task, best, table)
    (folder / "preset" / "README.md").write_text(card, encoding="utf-8")
    write_json(folder / "results.json", results)
    print(f"\n{table}\nSaved {folder / 'preset'}", flush=True)
    return results


def curves(folder: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Read the main score of every epoch from `metrics.csv`: `(epoch, score, 0)` by run."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = f"{float(row['learning_rate']):g}, seed {row['seed']}"
            main = float(row[tasks.main_metric(row)])
            found.setdefault(name, []).append((float(row["epoch"]), main, 0.0))
    return found


def load_best(folder: Path, config: Any) -> Any:
    """Load the best task of a run."""
    benchmark = hub.find(config.benchmark)
    return tasks.load_task(str(folder / "preset"), benchmark, config.sequence_length)


def answer_test_files(folder: Path, config: Any, test: Examples | None, task: Any) -> dict:
    """Write submissions into `folder/submission`; score what has labels.

    Returns:
        For each benchmark and split its scores, `{}` where they are secret.
    """
    benchmark, found = hub.find(config.benchmark), {}
    parts = [] if test is None else [(config.benchmark, benchmark, "test", test)]
    for name in ALSO.get(config.benchmark, ()):
        other = hub.find(name)
        for split in ("dev", "test"):
            if fine_tuning.has_file(config.data, other, split):
                parts.append((name, other, split, fine_tuning.read(config, other, split)))
    for name, part, split, examples in parts:
        predicted = tasks.predict(task, part, examples)
        is_known = examples.labels is not None
        found[f"{name}/{split}"] = tasks.score(part, examples, predicted) if is_known else {}
        if split == "test":
            tasks.submit(folder / "submission", part, examples, predicted)
    return found


def _card(folder: Path, config: Any, splits: Any, task: Any, best: dict, table: str) -> str:
    return _CARD.format(
        name=(folder / "preset").resolve().name,
        source=Path(config.preset).name,
        benchmark=hub.find(config.benchmark).name,
        version=__version__,
        examples=len(splits.training),
        learning_rate=best["learning_rate"],
        batch_size=config.batch_size,
        sequence_length=config.sequence_length,
        epochs=config.epochs,
        epoch=best["epoch"],
        seed=best["seed"],
        table=table,
        task=type(task).__name__,
    )
