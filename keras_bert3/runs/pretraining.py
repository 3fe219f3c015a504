"""The course of a pretraining run that all backbones share: text, corpus, phases, training.

What they do not share stands in one module an objective, found by `course_of`. Such a module has

    check(config)                                  refuses settings before any work
    make_tokenizer(config)                         reads a vocabulary or learns one
    make_phases(folder, config, corpus, tokenizer) batches of each sequence length, as `Phase`s
    make_task(config, tokenizer)                   the compiled model
    report(folder, config, task, corpus, phases)   prints and returns the final evaluation
"""

import importlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np

from keras_bert3.data.corpus import read_documents
from keras_bert3.data.python_documentation import python_documentation
from keras_bert3.data.tokenized_corpus import TokenizedCorpus, write_tokenized_corpus
from keras_bert3.runs import scaling
from keras_bert3.runs.training import train as train
from keras_bert3.training import replicas

# Backbone and objective; the first objective of a backbone is what its paper does.
COURSES = {
    ("bert", "mlm+nsp"): "bert_pretraining",
    ("bert", "mlm"): "bert_pretraining",
    ("bert", "ltr"): "bert_pretraining",
    ("gpt", "lm"): "gpt_pretraining",
    ("lstm", "lm"): "gpt_pretraining",
    ("deberta", "mlm"): "deberta_pretraining",
    ("deberta", "rtd"): "replaced_token_pretraining",
}

MASK_MIX = (0.8, 0.1, 0.1)
_DTYPE_POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


@dataclass(frozen=True)
class Phase:
    """A stretch of training at one sequence length.

    Attributes:
        sequence_length: tokens of a row.
        steps: updates.
        training: has `batch_size` and `forever()`, which yields endless batches.
        evaluation: held-out batches, the same each time.
    """

    sequence_length: int
    steps: int
    training: Any
    evaluation: Any


def objective_of(config) -> str:
    """Return the objective of a run: the one it names, or the first of its backbone.

    Raises:
        ValueError: if there is no such backbone, or it has no such objective.
    """
    backbones = list(dict.fromkeys(backbone for backbone, _ in COURSES))
    if config.backbone not in backbones:
        raise ValueError(
            f"Expected `backbone` to be one of {', '.join(backbones)}. "
            f"Received: {config.backbone!r}"
        )
    objectives = [objective for backbone, objective in COURSES if backbone == config.backbone]
    if config.objective not in (None, *objectives):
        raise ValueError(
            f"Expected `objective` of {config.backbone} to be one of {', '.join(objectives)}. "
            f"Received: {config.objective!r}"
        )
    return config.objective or objectives[0]


def course_of(config) -> ModuleType:
    """Return the module of the run's backbone and objective."""
    name = COURSES[config.backbone, objective_of(config)]
    return importlib.import_module(f"keras_bert3.runs.{name}")


def check(config) -> None:
    """Refuse settings that could only fail later, before any work.

    Raises:
        ValueError: naming the setting.
    """
    limits = {
        "steps": config.steps >= 1,
        "batch_size": config.batch_size >= 1,
        "long_batch_size": config.long_batch_size is None or config.long_batch_size >= 1,
        "log_every": config.log_every >= 1,
        "num_duplicates": config.num_duplicates >= 1,
        "sequence_length": config.sequence_length >= 5,
        "long_sequence_length": config.long_sequence_length >= 5,
        "long_fraction": 0 <= config.long_fraction <= 1,
        "held_out": 0 < config.held_out < 1,
        "dropout": 0 <= config.dropout < 1,
        "learning_rate": 0 < config.learning_rate < math.inf,
        "weight_decay": 0 <= config.weight_decay < math.inf,
        "warmup_steps": 0 <= config.warmup_steps <= config.steps,
        "dtype_policy": config.dtype_policy in _DTYPE_POLICIES,
    }
    for name, holds in limits.items():
        if not holds:
            raise ValueError(
                "Expected positive counts and rates, shares between 0 and 1, sequences of 5 tokens "
                f"or more, no more warm-up than steps, a dtype_policy of {_DTYPE_POLICIES}. "
                f"Received: {name}={getattr(config, name)}"
            )
    every = getattr(config, "presets_every", None)
    if every is not None and (every < 1 or every % config.log_every):
        raise ValueError(
            f"Expected presets_every to be a multiple of log_every={config.log_every}. "
            f"Received: presets_every={every}"
        )
    if getattr(config, "remat", False) and config.backbone == "lstm":
        raise ValueError("Expected --remat with Transformer blocks. Received: --backbone lstm")
    check_mask_mix(config)
    course_of(config).check(config)


def check_mask_mix(config) -> None:
    """Refuse shares that are none, or that would change nothing."""
    mix = tuple(getattr(config, "mask_mix", MASK_MIX))
    if min(mix) < 0 or abs(sum(mix) - 1) > 1e-6:
        raise ValueError(f"Expected mask_mix of three shares that sum to 1. Received: {mix}")
    is_masked = config.backbone == "bert" and objective_of(config) != "ltr"
    if mix != MASK_MIX and not is_masked:
        raise ValueError(
            f"Expected mask_mix={MASK_MIX} but for BERT's masked LM. Received: mask_mix={mix}"
        )


def start(config) -> scaling.Scale:
    """Find what the run is spread over, before anything is computed; see `scaling`."""
    return scaling.start(config, [batch_size for _, batch_size, _ in plan_of(config)])


def size_of(config, micro: dict[str, Any], published: dict[str, dict]) -> dict[str, Any]:
    """Return the backbone's arguments for `config.size`.

    Args:
        config: with `size`: `micro`, a published size, or layers and width, such as `4x256`, in the
            proportions of BERT and with the first weights of `micro`.
        micro: arguments of that size.
        published: arguments by name.

    Raises:
        ValueError: if there is no such size.
    """
    if config.size == "micro":
        return micro
    if match := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", config.size):
        layers, width = int(match[1]), int(match[2])
        if width % 64 == 0 and "num_layers" in micro:
            sizes = {"num_heads": width // 64, "hidden_dim": width, "intermediate_dim": 4 * width}
            return {**micro, "num_layers": layers, **sizes}
    if config.size not in published:
        raise ValueError(
            f"Expected `size` to be one of micro, {', '.join(published)}, or layers x width, as "
            f"4x256, where heads are 64 wide. Received: {config.size!r}"
        )
    return published[config.size]


def documents(config) -> Iterator[list[str]]:
    """Stream the documents of `config.data`, or of Python's documentation where there is none."""
    if not config.data:
        return python_documentation()
    return read_documents(config.data, config.data_format)


def sentences(config) -> Iterator[str]:
    """Stream the sentences of all documents."""
    return (sentence for document in documents(config) for sentence in document)


def make_corpus(folder: Path, config, tokenizer) -> TokenizedCorpus:
    """Tokenise the text into `folder/corpus`."""
    if (folder / "corpus").exists():  # of the same run, stopped before
        return TokenizedCorpus.open(folder / "corpus")
    print("Tokenising ...", flush=True)
    corpus = write_tokenized_corpus(folder / "corpus", documents(config), tokenizer)
    print(
        f"{corpus.num_documents:,} documents, {corpus.num_sentences:,} sentences, "
        f"{len(corpus.tokens):,} tokens",
        flush=True,
    )
    return corpus


def split_documents(corpus: TokenizedCorpus, config, fewest=1) -> tuple[np.ndarray, np.ndarray]:
    """Part the documents into those to train on and those held out, `fewest` of each at least.

    Raises:
        ValueError: if there are fewer documents than that takes.
    """
    if corpus.num_documents < 2 * fewest:
        raise ValueError(
            f"Expected at least {2 * fewest} documents, parted by blank lines: half of them to "
            f"train on, half to hold out. Received: {corpus.num_documents}"
        )
    share = max(config.held_out, fewest / corpus.num_documents)
    return corpus.split(share, config.seed)


def plan_of(config) -> list[tuple[int, int, int]]:
    """Return `(sequence length, batch size, steps)` of each phase that has steps."""
    long_steps = round(config.steps * config.long_fraction)
    long_batch_size = config.long_batch_size or max(
        1, config.batch_size * config.sequence_length // config.long_sequence_length
    )
    plan = [
        (config.sequence_length, config.batch_size, config.steps - long_steps),
        (config.long_sequence_length, long_batch_size, long_steps),
    ]
    return [(length, batch_size, steps) for length, batch_size, steps in plan if steps]


def longest(config) -> int:
    """Return the tokens of the longest sequence a run may see, the size of its position table."""
    return max(config.sequence_length, config.long_sequence_length)


def compile_task(task, optimizer, config) -> None:
    """Compile for a run of `config.steps` steps, and say how large the model is.

    Keras leaves XLA off on TensorFlow's CPU, where it halves the time of a step; compiling takes as
    long as many steps, so a short run does without.
    """
    use_xla = keras.backend.backend() == "tensorflow" and config.steps >= 500
    use_xla = use_xla and replicas.count() == 1  # strategies and XLA exclude each other in Keras
    settings = scaling.compile_settings(task, optimizer, getattr(config, "accumulate", 1))
    task.compile(**settings, jit_compile=True if use_xla else "auto")
    print(f"{task.count_params():,} parameters", flush=True)
