"""The course of pretraining: text, vocabulary, examples, phases, training."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert3.backbones import sizes
from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.data.corpus import read_documents
from keras_bert3.data.pretraining_batches import EvaluationBatches, PretrainingBatches
from keras_bert3.data.pretraining_examples import build_examples
from keras_bert3.data.python_documentation import python_documentation
from keras_bert3.data.tokenized_corpus import TokenizedCorpus, write_tokenized_corpus
from keras_bert3.runs.run_log import RunLog
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from keras_bert3.tokenizers.training import train_word_piece
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay

# Smaller than any published size, so that two CPU cores learn something in minutes. So narrow a
# model needs larger first weights than 0.02 for its attention to leave the uniform start early.
MICRO = {
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 128,
    "intermediate_dim": 512,
    "initializer_range": 0.06,
}


@dataclass(frozen=True)
class Phase:
    """A stretch of training at one sequence length.

    Attributes:
        sequence_length: tokens of a row.
        steps: updates.
        training: endless batches.
        evaluation: the held-out examples at this length, masks fixed.
    """

    sequence_length: int
    steps: int
    training: PretrainingBatches
    evaluation: EvaluationBatches


def check(config) -> None:
    """Refuse settings that could only fail later, before any work.

    Raises:
        ValueError: naming the setting.
    """
    _size(config.size)
    limits = {
        "steps": config.steps >= 1,
        "batch_size": config.batch_size >= 1,
        "log_every": config.log_every >= 1,
        "long_fraction": 0 <= config.long_fraction <= 1,
        "held_out": 0 < config.held_out < 1,
        "warmup_steps": 0 <= config.warmup_steps <= config.steps,
    }
    for name, holds in limits.items():
        if not holds:
            raise ValueError(
                "Expected positive counts, shares between 0 and 1, no more warm-up than steps. "
                f"Received: {name}={getattr(config, name)}"
            )


def documents(config) -> Iterator[list[str]]:
    """Stream the documents of `config.data`, or of Python's documentation where there is none."""
    if not config.data:
        return python_documentation()
    return read_documents(config.data, config.data_format)


def make_tokenizer(config) -> WordPieceTokenizer:
    """Read `config.vocabulary`, or learn a vocabulary from the text."""
    if config.vocabulary is not None:
        return WordPieceTokenizer(config.vocabulary, lowercase=config.lowercase)
    print(f"Learning a vocabulary of {config.vocabulary_size} tokens ...", flush=True)
    sentences = (sentence for document in documents(config) for sentence in document)
    vocabulary = train_word_piece(sentences, config.vocabulary_size, config.lowercase)
    return WordPieceTokenizer(vocabulary, lowercase=config.lowercase)


def make_corpus(folder: Path, config, tokenizer) -> TokenizedCorpus:
    """Tokenise the text into `folder/corpus`."""
    print("Tokenising ...", flush=True)
    corpus = write_tokenized_corpus(folder / "corpus", documents(config), tokenizer)
    print(
        f"{corpus.num_documents:,} documents, {corpus.num_sentences:,} sentences, "
        f"{len(corpus.tokens):,} tokens",
        flush=True,
    )
    return corpus


def split_documents(corpus: TokenizedCorpus, config) -> tuple[np.ndarray, np.ndarray]:
    """Part the documents into those to train on and those held out, two of each at least.

    Raises:
        ValueError: if there are fewer documents than that takes.
    """
    fewest = 2 if config.next_sentence else 1  # a random second segment needs another document
    if corpus.num_documents < 2 * fewest:
        raise ValueError(
            f"Expected at least {2 * fewest} documents, parted by blank lines: half of them to "
            f"train on, half to hold out. Received: {corpus.num_documents}"
        )
    share = max(config.held_out, fewest / corpus.num_documents)
    return corpus.split(share, config.seed)


def make_phases(folder: Path, config, corpus: TokenizedCorpus, tokenizer) -> list[Phase]:
    """Cut examples for both sequence lengths; a phase without steps is left out."""
    long_steps = round(config.steps * config.long_fraction)
    long_batch_size = config.long_batch_size or max(
        1, config.batch_size * config.sequence_length // config.long_sequence_length
    )
    plan = (
        (config.sequence_length, config.batch_size, config.steps - long_steps),
        (config.long_sequence_length, long_batch_size, long_steps),
    )
    training, held_out = split_documents(corpus, config)
    phases = []
    for length, batch_size, steps in plan:
        if not steps:
            continue
        print(f"Cutting examples of {length} tokens ...", flush=True)
        cut: dict[str, Any] = {"seed": config.seed, "next_sentence": config.next_sentence}
        options: dict[str, Any] = {"seed": config.seed, "whole_words": config.whole_words}
        name = f"examples-{length}"
        rows = build_examples(
            corpus, training, folder / f"{name}.npy", length, config.num_duplicates, **cut
        )
        held = build_examples(corpus, held_out, folder / f"{name}-held-out.npy", length, 1, **cut)
        phases.append(
            Phase(
                length,
                steps,
                PretrainingBatches(corpus, rows, tokenizer, length, batch_size, **options),
                EvaluationBatches(corpus, held, tokenizer, length, batch_size, **options),
            )
        )
    return phases


def make_task(config, tokenizer) -> MaskedLM:
    """Build and compile the model of `config.size`."""
    lengths = config.sequence_length, config.long_sequence_length
    backbone = BertBackbone(
        **{
            **_size(config.size),
            "vocabulary_size": tokenizer.vocabulary_size,
            "dropout": config.dropout,
            "max_sequence_length": max(lengths),
        }
    )
    preprocessor = MaskedLMPreprocessor(tokenizer, whole_words=config.whole_words)
    task = MaskedLM(backbone, config.next_sentence, preprocessor)
    schedule = WarmupLinearDecay(config.learning_rate, config.warmup_steps, config.steps)
    optimizer = BertAdam(schedule, weight_decay=config.weight_decay)
    # Keras leaves XLA off on TensorFlow's CPU, where it halves the time of a step; compiling takes
    # as long as many steps, so a short run does without.
    use_xla = keras.backend.backend() == "tensorflow" and config.steps >= 500
    task.compile(optimizer=optimizer, jit_compile=True if use_xla else "auto")
    print(f"{task.count_params():,} parameters", flush=True)
    return task


def _size(name: str) -> dict[str, Any]:
    if name == "micro":
        return MICRO
    if name not in sizes.BERT:
        raise ValueError(
            f"Expected `size` to be one of micro, {', '.join(sizes.BERT)}. Received: {name!r}"
        )
    return sizes.BERT[name]


def train(folder: Path, config, task: MaskedLM, phases: list[Phase]) -> None:
    """Train through all phases, one schedule and one count of steps over both.

    A Keras epoch is `config.log_every` steps, the last one of a phase perhaps fewer.
    """
    first_step = 0
    for phase in phases:
        print(f"\n{phase.steps:,} steps of {phase.sequence_length} tokens", flush=True)
        batches = phase.training.forever()
        tokens = phase.training.batch_size * phase.sequence_length
        log = RunLog(folder, tokens, first_step, task.optimizer._learning_rate)
        whole, rest = divmod(phase.steps, config.log_every)
        for epochs, steps in ((whole, config.log_every), (1, rest)):
            if epochs and steps:
                task.fit(batches, steps_per_epoch=steps, epochs=epochs, callbacks=[log])
        first_step += phase.steps


def take(batches: EvaluationBatches, most: int) -> list:
    """The first `most` evaluation batches."""
    return list(itertools.islice(batches, most))
