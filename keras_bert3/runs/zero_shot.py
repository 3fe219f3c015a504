"""The questions that a language model answers untaught, and the table of its answers."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from keras_bert3.benchmarks import glue, multiple_choice
from keras_bert3.benchmarks.referents import read_referents
from keras_bert3.benchmarks.text_benchmark import write_whole
from keras_bert3.runs.fine_tuning import append_rows
from keras_bert3.runs.kept_presets import kept_presets
from keras_bert3.runs.run_directory import write_json
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.zero_shot import choose, score_continuations

_CONNECTIVES = {
    multiple_choice.COPA_QUESTIONS["cause"]: "because",
    multiple_choice.COPA_QUESTIONS["effect"]: "so",
}
Question = tuple[list[str], list[str], int]
"""Contexts and continuations of each candidate as texts, and the right one."""


def _choices(name: str) -> Callable[[str], list[Question]]:
    """A reader of a benchmark of multiple choice: each choice after context and question."""

    def read(path: str) -> list[Question]:
        items = multiple_choice.BENCHMARKS[name].read_items(path, "dev")
        return [
            ([_context(item)] * len(item.choices), item.choices, item.answer)
            for item in items
            if item.answer is not None and all(item.choices)
        ]

    return read


def _context(item: multiple_choice.Item) -> str:
    """What stands before a choice: COPA's premise goes on with "because" or "so"."""
    if item.question in _CONNECTIVES:
        return f"{item.context.rstrip('.!? ')} {_CONNECTIVES[item.question]}"
    return "\n".join(text for text in (item.context, item.question) if text)


def _referents(path: str) -> list[Question]:
    return [
        (
            [f"{row.before} {name}".strip() for name in row.candidates],
            [row.after] * len(row.candidates),
            row.answer,
        )
        for row in read_referents(path)
    ]


def _sst2(path: str) -> list[Question]:
    examples, names = glue.SST2.read(path, "dev"), list(glue.SST2.labels)
    return [
        ([f"{text} very"] * 2, names, names.index(label))
        for text, label in zip(examples.inputs, examples.known_labels(), strict=True)
    ]


def _cola(path: str) -> list[tuple[str, int]]:
    examples, names = glue.COLA.read(path, "dev"), glue.COLA.labels
    labels = [names.index(label) for label in examples.known_labels()]
    return list(zip(examples.inputs, labels, strict=True))


READERS: dict[str, Callable] = {
    "cola": _cola,
    "sst2": _sst2,
    **{name: _choices(name) for name in multiple_choice.BENCHMARKS},
    "winograd": _referents,
    "dpr": _referents,
}


def read_all(data: Sequence[str], most: int | None = None) -> dict[str, list]:
    """Read `task=file` settings.

    Args:
        data: such settings.
        most: examples of a task at most.

    Raises:
        ValueError: for a setting of another form, an unknown task, or a file without answers.
    """
    examples = {}
    for setting in data:
        name, _, path = setting.partition("=")
        if name not in READERS or not path:
            raise ValueError(
                f"Expected task=file with a task among {', '.join(READERS)}. Received: {setting!r}"
            )
        examples[name] = READERS[name](path)[:most]
        if not examples[name]:
            raise ValueError(f"Expected examples with answers in '{path}'. Received: none")
    return examples


def models_of(presets: Sequence[str], run: str | None) -> dict[str | int, str]:
    """Name the models to ask: presets by where they are, those of a run by their steps.

    Raises:
        ValueError: for neither or both, or a run without presets.
    """
    if bool(presets) == bool(run):
        raise ValueError(
            f"Expected either presets or a run. Received: preset={list(presets)}, run={run}"
        )
    if run is None:
        return {name: name for name in presets}
    return {step: preset for step, preset in kept_presets(run).items()}


def measure_all(models: Mapping[str | int, str], examples: dict[str, list]) -> list[dict]:
    """Put all questions to all models, and print each score as it comes.

    Args:
        models: names, and folders or hub names of presets. Those of a run, named by steps, are of
            one architecture, so that one compiled program serves them all.
        examples: from `read_all`.

    Returns:
        A row for each model and task: `model`, and what `measure` returns.
    """
    rows, task = [], None
    for model, preset in models.items():
        loaded = CausalLM.from_preset(preset)
        if task is None or isinstance(model, str):
            task = loaded
        else:
            task.set_weights(loaded.get_weights())
        print(f"{model}:", flush=True)
        for name, read in examples.items():
            rows.append({"model": model, **measure(task, name, read)})
            print(line(rows[-1]), flush=True)
    return rows


def measure(task, name: str, examples: list) -> dict:
    """Score one task.

    Args:
        task: a `CausalLM` with a tokenizer.
        name: of the task.
        examples: from `read_all`.

    Returns:
        `task`, `n` (examples scored), `metric`, `chance`, `score`, and `error`, the standard error
        of the score of somebody who guesses.
    """
    tokenizer = task.preprocessor.tokenizer
    if name == "cola":
        return _measure_acceptability(task, examples)
    encoded = [
        ([tokenizer(text) for text in contexts], [tokenizer(text) for text in continuations])
        for contexts, continuations, _ in examples
    ]
    right = choose(task, encoded) == np.array([answer for *_, answer in examples])
    chance = float(np.mean([1 / len(contexts) for contexts, *_ in examples]))
    return {
        "task": name,
        "n": len(examples),
        "metric": "accuracy",
        "chance": chance,
        "score": float(right.mean()),
        "error": math.sqrt(chance * (1 - chance) / len(examples)),
    }


def _measure_acceptability(task, examples) -> dict:
    """Matthews correlation of a threshold that the other half of the rows chose."""
    ids = [task.preprocessor.tokenizer(text) for text, _ in examples]
    kept = [i for i, row in enumerate(ids) if len(row) > 1]
    scores = score_continuations(task, [ids[i][:1] for i in kept], [ids[i][1:] for i in kept])
    labels = np.array([examples[i][1] for i in kept])
    halves = np.array_split(np.random.default_rng(0).permutation(len(kept)), 2)
    thresholds = np.unique(scores[halves[0]])
    found = [matthews(labels[halves[0]], scores[halves[0]] >= limit) for limit in thresholds]
    guesses = scores[halves[1]] >= thresholds[int(np.argmax(found))]
    return {
        "task": "cola",
        "n": len(halves[1]),
        "metric": "Matthews correlation",
        "chance": 0.0,
        "score": matthews(labels[halves[1]], guesses),
        "error": 1 / math.sqrt(len(halves[1])),
    }


def matthews(labels: np.ndarray, guesses: np.ndarray) -> float:
    """Matthews correlation of booleans; 0 where one of the two is constant.

    (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)): Matthews 1975.
    """
    labels, guesses = np.asarray(labels, bool), np.asarray(guesses, bool)
    if labels.std() == 0 or guesses.std() == 0:
        return 0.0
    return float(np.corrcoef(labels, guesses)[0, 1])


def line(row: dict) -> str:
    """A row of the table as Markdown."""
    return (
        f"| {row['task']:8s} | {row['n']:5d} | {row['metric']} | {row['chance']:.3f} "
        f"± {row['error']:.3f} | {row['score']:.3f} |"
    )


def table(rows: list[dict]) -> str:
    """All scores as Markdown: a line for each model, a column for each task."""
    tasks = {row["task"]: row for row in rows}
    models = list(dict.fromkeys(row["model"] for row in rows))
    scores = {(row["model"], row["task"]): row["score"] for row in rows}
    is_run = all(isinstance(model, int) for model in models)
    lines = [
        [("steps" if is_run else "model"), *tasks],
        ["---"] * (len(tasks) + 1),
        ["examples", *(str(row["n"]) for row in tasks.values())],
        ["guessing", *(f"{row['chance']:.3f} ± {row['error']:.3f}" for row in tasks.values())],
        *([f"{model}", *(f"{scores[model, task]:.3f}" for task in tasks)] for model in models),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def curves(rows: list[dict]) -> dict[str, list[tuple[float, float, float]]]:
    """For each task over steps (s - c) / (1 - c), s the score and c what guessing gives.

    0 is guessing, 1 is everything right, for accuracies and Matthews correlations alike. (The paper
    puts 1 at the best supervised model of its day: figure 2, right.)

    Returns:
        Steps, values and the standard error of a guesser, in steps' order.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        room = 1 - row["chance"]
        value = (row["score"] - row["chance"]) / room
        found.setdefault(row["task"], []).append((row["model"], value, row["error"] / room))
    return {task: sorted(points) for task, points in found.items()}


def save(folder: Path, rows: list[dict]) -> None:
    """Write `metrics.csv`, `results.json` and `results.md`."""
    append_rows(folder / "metrics.csv", rows)
    write_json(folder / "results.json", rows)
    write_whole(folder / "results.md", table(rows))
