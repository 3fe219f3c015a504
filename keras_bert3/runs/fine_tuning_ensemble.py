"""Several runs that answer together: the mean of their probabilities, or of their numbers.

    p(class) = mean_i softmax(outputs_i)[class],  i: the runs with the best scores on dev

Devlin et al. 2018, table 2, shows such an ensemble of seven runs for SQuAD, where it is of spans.
"""

from pathlib import Path
from typing import Any

import numpy as np

from keras_bert3.benchmarks.multiple_choice import ChoiceBenchmark
from keras_bert3.benchmarks.text_benchmark import TextBenchmark
from keras_bert3.runs import fine_tuning_tasks as tasks

FOLDER = "outputs"


def check(benchmark: Any, size: int, runs: int) -> None:
    """Refuse what has no mean, or fewer runs than are asked for; 0 asks for no ensemble.

    Raises:
        ValueError: naming the benchmark, or both numbers.
    """
    if size and not isinstance(benchmark, TextBenchmark | ChoiceBenchmark):
        raise ValueError(
            f"Expected a benchmark of texts or choices to average. Received: {benchmark.name}"
        )
    if size < 0 or size > runs:
        raise ValueError(
            f"Expected an ensemble of up to {runs} runs, the learning rates times the seeds. "
            f"Received: ensemble={size}"
        )


def keep_outputs(folder: Path, run: dict[str, Any], task: Any, benchmark: Any, splits: Any) -> None:
    """Store what a run says of the development set and, where there is one, the test set."""
    (folder / FOLDER).mkdir(exist_ok=True)
    known = {"dev": splits.validation, "test": splits.test}
    arrays: dict[str, Any] = {
        split: _shares(benchmark, tasks.outputs(task, examples))
        for split, examples in known.items()
        if examples is not None
    }
    np.savez(_file(folder, run), **arrays)


def answer_together(
    folder: Path, rows: list[dict[str, Any]], size: int, benchmark: Any, splits: Any
) -> dict[str, float]:
    """Score the best runs together, and write their answers to the test set.

    Args:
        folder: of the runs; gets `ensemble/` where there is a test set.
        rows: a row for each run.
        size: how many of them.
        benchmark: an entry of `benchmarks.hub.BENCHMARKS`.
        splits: the examples.

    Returns:
        Scores of the development set.
    """
    main = tasks.main_metric(rows[0])
    best = sorted(rows, key=lambda row: -row[main])[:size]
    files = [np.load(_file(folder, row)) for row in best]
    means = {name: np.mean([file[name] for file in files], axis=0) for name in files[0].files}
    if "test" in means:
        predicted = tasks.answers(benchmark, means["test"])
        tasks.submit(folder / "ensemble", benchmark, splits.test, predicted)
    return tasks.score(benchmark, splits.validation, tasks.answers(benchmark, means["dev"]))


def _file(folder: Path, run: dict[str, Any]) -> Path:
    return folder / FOLDER / f"{run['learning_rate']:g}-{run['seed']}.npz"


def _shares(benchmark: Any, outputs: np.ndarray) -> np.ndarray:
    """Probabilities for scores of classes or choices; numbers stay."""
    outputs = outputs.astype("float64")
    if isinstance(benchmark, TextBenchmark) and not benchmark.labels:
        return outputs
    powers = np.exp(outputs - outputs.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
