"""The questions that a language model answers untaught, and the table of its answers."""

import csv
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from keras_bert3.data import choices
from keras_bert3.tasks.zero_shot import choose, score_continuations

_CONNECTIVES = {"cause": "because", "effect": "so"}
Question = tuple[list[str], list[str], int]
"""Contexts and continuations of each candidate as texts, and the right one."""


def _copa(path) -> list[Question]:
    return [
        (
            [f"{row.context.rstrip('.!? ')} {_CONNECTIVES[row.question]}"] * len(row.choices),
            row.choices,
            row.answer,
        )
        for row in choices.read_copa(path)
    ]


def _dream(path) -> list[Question]:
    return [
        ([f"{row.context}\n{row.question}"] * len(row.choices), row.choices, row.answer)
        for row in choices.read_dream(path)
    ]


def _referents(path) -> list[Question]:
    return [
        (
            [f"{row.before} {name}".strip() for name in row.candidates],
            [row.after] * len(row.candidates),
            row.answer,
        )
        for row in choices.read_referents(path)
    ]


def _sst2(path) -> list[Question]:
    rows = choices.read_columns(path, ("sentence", "label"))
    return [([f"{text} very"] * 2, ["negative", "positive"], int(label)) for text, label in rows]


def _cola(path) -> list[tuple[str, int]]:
    return [(text, int(label)) for label, text in choices.read_columns(path, (1, 3))]


READERS: dict[str, Callable] = {
    "cola": _cola,
    "sst2": _sst2,
    "copa": _copa,
    "dream": _dream,
    "winograd": _referents,
    "dpr": _referents,
}


def read_all(data: Sequence[str], most: int | None = None) -> dict[str, list]:
    """Read `task=file` settings.

    Args:
        data: such settings.
        most: examples of a task at most.

    Raises:
        ValueError: for a setting of another form or an unknown task.
    """
    examples = {}
    for setting in data:
        name, _, path = setting.partition("=")
        if name not in READERS or not path:
            raise ValueError(
                f"Expected task=file with a task among {', '.join(READERS)}. Received: {setting!r}"
            )
        examples[name] = READERS[name](path)[:most]
    return examples


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


def write_table(path: str | Path, rows: list[dict]) -> None:
    """Write rows as CSV, under a temporary name first."""
    path = Path(path)
    temporary = path.with_name(path.name + ".part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)
