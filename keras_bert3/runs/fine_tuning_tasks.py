"""Which task a benchmark is for a family of models, and how its predictions are scored.

| benchmark       | BERT, DeBERTa     | GPT-1                                                  |
|-----------------|-------------------|--------------------------------------------------------|
| texts and pairs | `TextClassifier`  | `GPTTextClassifier`; `GPTSimilarity` where order does  |
|                 |                   | not count                                              |
| multiple choice | `MultipleChoice`  | `GPTMultipleChoice`                                    |
| named entities  | `TokenClassifier` | (its paper has none)                                   |
| SQuAD           | `ExtractiveQA`    | (its paper has none)                                   |
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.backbones.backbone import Backbone
from keras_bert3.backbones.bilstm import BiLSTMBackbone
from keras_bert3.backbones.deberta import DebertaBackbone
from keras_bert3.backbones.gpt import GPTBackbone
from keras_bert3.backbones.lstm import LSTMBackbone
from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.multiple_choice import ChoiceBenchmark
from keras_bert3.benchmarks.named_entities import EntityBenchmark
from keras_bert3.benchmarks.squad import SquadBenchmark
from keras_bert3.benchmarks.text_benchmark import TextBenchmark
from keras_bert3.checkpoints.detect import reader_of
from keras_bert3.checkpoints.handles import local_folder
from keras_bert3.checkpoints.native import public_class
from keras_bert3.tasks.extractive_qa import ExtractiveQA
from keras_bert3.tasks.gpt_fine_tuning import GPTMultipleChoice, GPTSimilarity, GPTTextClassifier
from keras_bert3.tasks.multiple_choice import MultipleChoice
from keras_bert3.tasks.text_classifier import TextClassifier
from keras_bert3.tasks.token_classifier import TokenClassifier

SYMMETRIC = ("MRPC", "QQP", "STS-B")
"""Pairs whose order does not count (Radford et al. 2018, section 3.3)."""
_MULTIPLE = 16  # lengths of batches are rounded up: JAX compiles a program for each

MAIN_METRICS = ("matthews", "spearman", "best_f1", "f1", "accuracy")
"""What chooses the best run: the first of these that a benchmark has (Devlin et al. 2018, table 1:
F1 for MRPC and QQP, Spearman's correlation for STS-B)."""


class Predictions(NamedTuple):
    """What a task says of examples.

    Args:
        values: names of classes, numbers, numbers of choices, tags or answers.
        null_margins: of answers that are given even where there may be none, by a task without
            `null_threshold` (SQuAD 2.0); None elsewhere.
    """

    values: list[Any]
    null_margins: list[float] | None = None


class Origin(NamedTuple):
    """What a checkpoint says of itself.

    Args:
        family: bert, gpt or deberta.
        hidden_dim: width.
        task_class: name of the task that it was saved from, or None.
        task_config: constructor arguments of that task.
    """

    family: str
    hidden_dim: int
    task_class: str | None
    task_config: dict[str, Any]


def origin_of(preset: str) -> Origin:
    """Read the description of a checkpoint; no weights are loaded.

    Raises:
        ValueError: if the folder holds no checkpoint.
    """
    folder = local_folder(preset)
    description = reader_of(folder).describe(folder)
    name, config = description.backbone_class, description.backbone_config
    if name == BiLSTMBackbone.__name__:  # of the family of what it stands on
        name, config = config["encoder"]["class"], config["encoder"]["config"]
    found = public_class(name, Backbone)
    family = "bert"
    if issubclass(found, DebertaBackbone):
        family = "deberta"
    elif issubclass(found, GPTBackbone | LSTMBackbone):
        family = "gpt"
    return Origin(family, config["hidden_dim"], description.task_class, description.task_config)


def task_class_of(benchmark: Any, family: str) -> type:
    """Choose the task; see the table above.

    Raises:
        ValueError: for GPT-1 and a benchmark that needs [CLS].
    """
    is_gpt = family == "gpt"
    if isinstance(benchmark, TextBenchmark):
        if is_gpt:
            return GPTSimilarity if benchmark.name in SYMMETRIC else GPTTextClassifier
        return TextClassifier
    if isinstance(benchmark, ChoiceBenchmark):
        return GPTMultipleChoice if is_gpt else MultipleChoice
    if is_gpt:
        raise ValueError(
            f"Expected a benchmark of texts, pairs or choices for GPT-1. Received: {benchmark.name}"
        )
    return ExtractiveQA if isinstance(benchmark, SquadBenchmark) else TokenClassifier


def load_task(preset: str, benchmark: Any, sequence_length: int) -> Any:
    """Load a checkpoint as the benchmark's task; classes other than its own start anew.

    Args:
        preset: folder, or name on a hub.
        benchmark: an entry of `benchmarks.hub.BENCHMARKS`.
        sequence_length: tokens of a row at most.

    Raises:
        ValueError: for a checkpoint without tokenizer, or shorter than `sequence_length`.
    """
    origin = origin_of(preset)
    cls: Any = task_class_of(benchmark, origin.family)
    classes: dict[str, Any] = {}
    if isinstance(benchmark, TextBenchmark | EntityBenchmark):
        labels = list(benchmark.labels)
        classes = {"labels": labels} if labels else {"num_classes": 1}
    is_window = cls in (ExtractiveQA, TokenClassifier)
    length = {"sequence_length": sequence_length} if is_window else {}
    task = cls.from_preset(
        preset, new_heads=_other_heads(cls, origin, classes), **classes, **length
    )
    if task.preprocessor is None:
        raise ValueError(f"Expected a checkpoint with a tokenizer in '{preset}'. Received: none")
    longest = task.backbone.max_sequence_length
    if sequence_length > longest:
        raise ValueError(
            f"Expected sequence_length up to {longest}, the positions of the model. "
            f"Received: {sequence_length}"
        )
    if not is_window:
        task.preprocessor.sequence_length = None
        task.preprocessor.max_sequence_length = sequence_length
        task.preprocessor.pad_to_multiple_of = _MULTIPLE
    return task


def _other_heads(cls: Any, origin: Origin, classes: dict[str, Any]) -> tuple[str, ...]:
    """The classifier, where the checkpoint's is for other classes."""
    if origin.task_class != cls.__name__ or not classes:
        return ()
    stored = origin.task_config
    is_same = all(stored.get(name) == value for name, value in classes.items())
    return () if is_same else cls.head_names[-1:]


def predict(task: Any, benchmark: Any, examples: Examples) -> Predictions:
    """Predict what the benchmark scores and sends in."""
    inputs = examples.inputs
    if isinstance(benchmark, SquadBenchmark):
        spans = [found[0] for found in task.candidates(*inputs, count=20)]
        margins = [float(span.null_margin) for span in spans]
        is_open = benchmark.has_null and task.null_threshold is None
        return Predictions([span.text for span in spans], margins if is_open else None)
    if isinstance(benchmark, EntityBenchmark):
        return Predictions(task.predict(inputs))
    return answers(benchmark, outputs(task, examples))


def outputs(task: Any, examples: Examples) -> np.ndarray:
    """Predict scores of classes or choices, or numbers: `[n, c]`."""
    return task.predict(examples.inputs, verbose=0)


def answers(benchmark: Any, scores: np.ndarray) -> Predictions:
    """Name what the scores `[n, c]` of texts, pairs or choices say."""
    if isinstance(benchmark, ChoiceBenchmark):
        return Predictions(np.argmax(scores, 1).tolist())
    if not benchmark.labels:
        return Predictions(scores[:, 0].astype("float64").tolist())
    return Predictions([benchmark.labels[i] for i in np.argmax(scores, 1)])


def score(benchmark: Any, examples: Examples, predicted: Predictions) -> dict[str, float]:
    """Score predictions as the benchmark does."""
    if predicted.null_margins is None:
        return benchmark.score(examples, predicted.values)
    return benchmark.score(examples, predicted.values, predicted.null_margins)


def main_metric(scores: Collection[str]) -> str:
    """Name the score that chooses the best run; see `MAIN_METRICS`."""
    return next(name for name in MAIN_METRICS if name in scores)


def check_scores(benchmark: Any, examples: Examples) -> None:
    """Score the labels themselves, so that what is missing for it is missed before any work.

    Raises:
        ImportError: for a package.
        ValueError: for examples without labels.
    """
    labels = examples.known_labels()
    if isinstance(benchmark, SquadBenchmark):
        labels = [label["text"][0] if label["text"] else "" for label in labels]
    benchmark.score(examples, labels)


def submit(folder: Path, benchmark: Any, examples: Examples, predicted: Predictions) -> Path | None:
    """Write predictions as the benchmark's server takes them; None where it has no server."""
    if isinstance(benchmark, SquadBenchmark):
        return benchmark.write_submission(folder, examples, *predicted)
    if isinstance(benchmark, EntityBenchmark):
        return benchmark.write_submission(folder, examples, predicted.values)
    return benchmark.write_submission(folder, predicted.values) if benchmark.submission else None
