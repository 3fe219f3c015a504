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
import os
from collections.abc import Iterable
from pathlib import Path

import keras
import numpy as np

from keras_bert3.backbones.lstm import LSTMBackbone
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.gpt_fine_tuning import GPTTextClassifier, add_task_tokens
from keras_bert3.tasks.gpt_preprocessors import GPTPreprocessor

VARIANTS = ("full", "no_auxiliary", "no_pretraining", "lstm")


def check_variants(variants: Iterable[str], num_layers: int) -> None:
    """Refuse a variant that the table above lacks, before any work.

    Raises:
        ValueError: naming it.
    """
    for variant in variants:
        kind, _, count = variant.partition("=")
        is_layers = kind == "layers" and count.isdigit() and int(count) <= num_layers
        if variant not in VARIANTS and not is_layers:
            raise ValueError(
                f"Expected variants among {', '.join(VARIANTS)} and layers=k with k up to "
                f"{num_layers}. Received: {variant!r}"
            )


def partly_pretrained(backbone, num_layers: int):
    """Make a new backbone of a kind, and copy the tables and the first blocks.

    Args:
        backbone: a pretrained `GPTBackbone`.
        num_layers: blocks to copy; with -1 nothing is, the tables neither.

    Returns:
        A backbone of the same configuration.
    """
    made = type(backbone).from_config(backbone.get_config())
    kept = {"embeddings", *(f"block_{i}" for i in range(num_layers))} if num_layers >= 0 else set()
    old = variables_by_path(backbone)
    for path, variable in variables_by_path(made).items():
        if path.split("/")[0] in kept:
            variable.assign(old[path].value)
    return made


def make_classifier(
    variant: str, pretrained: CausalLM, labels: list[str], sequence_length: int, lstm=None
) -> GPTTextClassifier:
    """Build the classifier of a variant, not compiled.

    Args:
        variant: see the table above.
        pretrained: a language model with a tokenizer.
        labels: names of the classes.
        sequence_length: tokens of a row.
        lstm: a language model around an `LSTMBackbone`; None: a new one, as wide.
    """
    source, count = pretrained, pretrained.backbone.num_layers
    if variant == "lstm":
        source = lstm or _new_lstm(pretrained)
    elif variant == "no_pretraining":
        count = -1
    elif variant.startswith("layers="):
        count = int(variant.partition("=")[2])
    backbone = source.backbone if variant == "lstm" else partly_pretrained(source.backbone, count)
    preprocessor = GPTPreprocessor(source.preprocessor.tokenizer, sequence_length)
    weight = 0.0 if variant == "no_auxiliary" else 0.5
    return add_task_tokens(
        GPTTextClassifier(
            backbone, preprocessor=preprocessor, labels=labels, auxiliary_lm_weight=weight
        )
    )


def _new_lstm(pretrained: CausalLM) -> CausalLM:
    names = ("vocabulary_size", "hidden_dim", "dropout", "max_sequence_length", "initializer_range")
    backbone = LSTMBackbone(**{name: getattr(pretrained.backbone, name) for name in names})
    return CausalLM(backbone, pretrained.preprocessor)


def fine_tune(
    task: GPTTextClassifier,
    training: tuple[list[str], list[str]],
    validation: tuple[list[str], list[str]],
    learning_rate: float,
    epochs: int,
    batch_size: int,
    seed: int,
) -> float:
    """Train on texts and their labels; return the share of validation labels that are right."""
    keras.utils.set_random_seed(seed)
    updates = epochs * -(-len(training[0]) // batch_size)
    recipe = task.backbone.fine_tuning._replace(learning_rate=learning_rate)
    task.compile(optimizer=recipe.make(updates))
    task.fit(*training, batch_size=batch_size, epochs=epochs, verbose=2)
    guesses = task.predict(validation[0], batch_size=batch_size, verbose=0).argmax(-1)
    names = task.labels or []
    return float(np.mean([names[i] == y for i, y in zip(guesses, validation[1], strict=True)]))


def majority(labels: list[str]) -> float:
    """The share of the most frequent label."""
    return max(labels.count(label) for label in set(labels)) / len(labels)


def append_row(path: str | Path, row: dict) -> None:
    """Add a row to a CSV file; the file is replaced as a whole."""
    path = Path(path)
    rows = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    temporary = path.with_name(path.name + ".part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        writer.writeheader()
        writer.writerows([*rows, row])
    os.replace(temporary, path)
