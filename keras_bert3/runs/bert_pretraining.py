"""BERT's pretraining: masked language modelling, with next-sentence prediction or without.

Its ablation `ltr` predicts every token from those on its left (Devlin et al. 2018, section 5.1).
"""

from pathlib import Path
from typing import Any

import numpy as np

from keras_bert3.backbones import sizes
from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.backbones.left_to_right_bert import LeftToRightBertBackbone
from keras_bert3.data.left_to_right_batches import LeftToRightBatches, LeftToRightEvaluation
from keras_bert3.data.pretraining_batches import EvaluationBatches, PretrainingBatches
from keras_bert3.data.pretraining_examples import build_examples
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.runs import pretraining
from keras_bert3.runs.masked_lm_report import report as report
from keras_bert3.runs.pretraining import Phase
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
MASKING = ("tokens", "whole_words")
_BATCHES = {"ltr": (LeftToRightBatches, LeftToRightEvaluation)}


def check(config) -> None:
    """Refuse an unknown size or way of masking, and parts that BERT does not have.

    Raises:
        ValueError: naming it.
    """
    pretraining.size_of(config, MICRO, sizes.BERT)
    check_masking(config, MASKING)
    if config.without:
        raise ValueError(
            f"Expected `without` for DeBERTa's parts alone. Received: {', '.join(config.without)}"
        )


def check_masking(config, known: tuple[str, ...]) -> None:
    """Refuse a way of masking that is not known."""
    if config.masking not in known:
        raise ValueError(
            f"Expected `masking` to be one of {', '.join(known)}. Received: {config.masking!r}"
        )


def make_tokenizer(config) -> WordPieceTokenizer:
    """Read `config.vocabulary`, or learn a vocabulary from the text."""
    if config.vocabulary is not None:
        return WordPieceTokenizer(config.vocabulary, lowercase=config.lowercase)
    print(f"Learning a vocabulary of {config.vocabulary_size} tokens ...", flush=True)
    sentences = pretraining.sentences(config)
    vocabulary = train_word_piece(sentences, config.vocabulary_size, config.lowercase)
    return WordPieceTokenizer(vocabulary, lowercase=config.lowercase)


def make_phases(folder: Path, config, corpus: TokenizedCorpus, tokenizer) -> list[Phase]:
    """Cut examples for both sequence lengths."""
    objective = pretraining.objective_of(config)
    next_sentence = objective == "mlm+nsp"
    fewest = 2 if next_sentence else 1  # a random second segment needs another document
    training, held_out = pretraining.split_documents(corpus, config, fewest)
    cut: dict[str, Any] = {"seed": config.seed, "next_sentence": next_sentence}
    options: dict[str, Any] = {
        "seed": config.seed,
        "whole_words": config.masking == "whole_words",
        "probabilities": getattr(config, "mask_mix", pretraining.MASK_MIX),
    }
    batches, evaluation = _BATCHES.get(objective, (PretrainingBatches, EvaluationBatches))
    phases = []
    for length, batch_size, steps in pretraining.plan_of(config):
        print(f"Cutting examples of {length} tokens ...", flush=True)
        name = f"examples-{length}"
        rows = examples(
            folder / f"{name}.npy", corpus, training, length, config.num_duplicates, **cut
        )
        held = examples(folder / f"{name}-held-out.npy", corpus, held_out, length, 1, **cut)
        phases.append(
            Phase(
                length,
                steps,
                batches(corpus, rows, tokenizer, length, batch_size, **options),
                evaluation(corpus, held, tokenizer, length, batch_size, **options),
            )
        )
    return phases


def examples(path: Path, corpus, documents, length, num_duplicates, **cut) -> np.ndarray:
    """Cut examples into `path`, or open what an earlier process of the same run has cut."""
    if path.exists():
        return np.load(path, mmap_mode="r")
    return build_examples(corpus, documents, path, length, num_duplicates, **cut)


def make_task(config, tokenizer) -> MaskedLM:
    """Build and compile the model of `config.size`."""
    is_bidirectional = pretraining.objective_of(config) != "ltr"
    backbone = (BertBackbone if is_bidirectional else LeftToRightBertBackbone)(
        **{
            **pretraining.size_of(config, MICRO, sizes.BERT),
            "vocabulary_size": tokenizer.vocabulary_size,
            "dropout": config.dropout,
            "max_sequence_length": pretraining.longest(config),
        }
    )
    preprocessor = MaskedLMPreprocessor(tokenizer, whole_words=config.masking == "whole_words")
    task = MaskedLM(backbone, pretraining.objective_of(config) == "mlm+nsp", preprocessor)
    schedule = WarmupLinearDecay(config.learning_rate, config.warmup_steps, config.steps)
    optimizer = BertAdam(schedule, weight_decay=config.weight_decay)
    pretraining.compile_task(task, optimizer, config)
    return task
