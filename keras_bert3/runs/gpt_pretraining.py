"""GPT-1's pretraining: the next token, in windows of running text (Radford et al. 2018, 4.1).

An LSTM, the paper's ablation, goes the same way.
"""

from pathlib import Path

from keras_bert3.backbones import sizes
from keras_bert3.backbones.gpt import GPTBackbone
from keras_bert3.backbones.lstm import LSTMBackbone
from keras_bert3.data.language_model_batches import EvaluationWindows, LanguageModelBatches
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.runs import pretraining
from keras_bert3.runs.causal_lm_report import report as report
from keras_bert3.runs.pretraining import Phase
from keras_bert3.tasks.causal_lm import CausalLM, CausalLMPreprocessor
from keras_bert3.tokenizers.byte_pair import BytePairTokenizer
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from keras_bert3.training.optimizers import GPTAdam
from keras_bert3.training.schedules import WarmupCosineDecay

# Smaller than the published size, so that two CPU cores learn something in minutes, and with larger
# first weights than 0.02, from which so narrow a model would start slowly.
MICRO = {
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 128,
    "intermediate_dim": 512,
    "initializer_range": 0.06,
}
_LSTM_MICRO = {"hidden_dim": 128, "initializer_range": 0.06}
_BACKBONES = {
    "gpt": (GPTBackbone, MICRO, sizes.GPT),
    "lstm": (LSTMBackbone, _LSTM_MICRO, {"base": {"hidden_dim": 2048}}),
}
# GPT-1's words are lower-cased, and nothing is masked: another value would change nothing.
_WITHOUT_MEANING = {"masking": "tokens", "lowercase": True, "without": ()}
_MOST_LOGITS = 2**26
"""Scores of an evaluation batch at most, 256 MiB in float32: every position has all tokens'."""


def check(config) -> None:
    """Refuse an unknown size, what does not exist here, and words without what cuts them.

    Raises:
        ValueError: naming the size or setting.
        ImportError: naming the extra.
    """
    pretraining.size_of(config, *_BACKBONES[config.backbone][1:])
    for name, only in _WITHOUT_MEANING.items():
        if getattr(config, name) != only:
            raise ValueError(
                f"Expected {name}={only} for {config.backbone}, which has no other. "
                f"Received: {name}={getattr(config, name)}"
            )
    if config.vocabulary is None:
        BytePairTokenizer(["<unk>"], [])


def make_tokenizer(config) -> BytePairTokenizer:
    """Read the folder `config.vocabulary`, or learn `config.vocabulary_size` merges."""
    if config.vocabulary is not None:
        return BytePairTokenizer.load(config.vocabulary)
    print(f"Learning {config.vocabulary_size} merges ...", flush=True)
    return train_byte_pair(pretraining.sentences(config), config.vocabulary_size)


def make_phases(folder: Path, config, corpus: TokenizedCorpus, tokenizer) -> list[Phase]:
    """Windows that begin anywhere to train on, windows end to end to evaluate."""
    training, held_out = pretraining.split_documents(corpus, config)
    phases = []
    for length, batch_size, steps in pretraining.plan_of(config):
        fitting = max(1, _MOST_LOGITS // (length * tokenizer.vocabulary_size))
        phases.append(
            Phase(
                length,
                steps,
                LanguageModelBatches(corpus, training, length, batch_size, config.seed),
                EvaluationWindows(corpus, held_out, length, min(batch_size, fitting)),
            )
        )
    return phases


def make_task(config, tokenizer) -> CausalLM:
    """Build and compile the model of `config.size`."""
    cls, micro, published = _BACKBONES[config.backbone]
    backbone = cls(
        **{
            **pretraining.size_of(config, micro, published),
            "vocabulary_size": tokenizer.vocabulary_size,
            "dropout": config.dropout,
            "max_sequence_length": pretraining.longest(config),
        }
    )
    task = CausalLM(backbone, CausalLMPreprocessor(tokenizer))
    schedule = WarmupCosineDecay(config.learning_rate, config.warmup_steps, config.steps)
    optimizer = GPTAdam(schedule, matrix_decay=config.weight_decay)
    pretraining.compile_task(task, optimizer, config)
    return task
