"""DeBERTa's pretraining: masked language modelling through the enhanced mask decoder."""

from pathlib import Path
from typing import Any

from keras_bert3.backbones import sizes
from keras_bert3.backbones.deberta import DebertaBackbone
from keras_bert3.backbones.deberta_v2 import DebertaV2Backbone
from keras_bert3.data.pretraining_batches import EvaluationBatches, PretrainingBatches
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.layers.disentangled_self_attention import TERMS
from keras_bert3.runs import bert_pretraining, pretraining
from keras_bert3.runs.bert_pretraining import make_tokenizer as make_tokenizer
from keras_bert3.runs.masked_lm_report import report as report
from keras_bert3.runs.pretraining import Phase
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay

MICRO = {**bert_pretraining.MICRO, "span": 32}
PARTS = ("emd", *TERMS)
"""What a run can do without (He et al. 2021, table 5)."""
BERT_DECODER = {"num_steps": 1, "first_query": "hidden"}
# How tokens are masked together, as arguments of `mask_batch`; three words at most in the paper.
MASKING: dict[str, dict[str, Any]] = {
    "tokens": {},
    "whole_words": {"whole_words": True},
    "n_grams": {"whole_words": True, "longest_group": 3},
}


def check(config) -> None:
    """Refuse an unknown size, way of masking or part to leave out.

    Raises:
        ValueError: naming it.
    """
    pretraining.size_of(config, MICRO, {**sizes.DEBERTA, **sizes.DEBERTA_V2})
    bert_pretraining.check_masking(config, tuple(MASKING))
    unknown = sorted(set(config.without) - set(PARTS))
    if unknown:
        raise ValueError(
            f"Expected `without` among {', '.join(PARTS)}. Received: {', '.join(unknown)}"
        )


def make_phases(folder: Path, config, corpus: TokenizedCorpus, tokenizer) -> list[Phase]:
    """Cut examples of one segment for both sequence lengths."""
    return cut_phases(folder, config, corpus, tokenizer, MASKING[config.masking])


def cut_phases(folder: Path, config, corpus, tokenizer, masking: dict) -> list[Phase]:
    """Cut examples of one segment; `masking` are arguments of `mask_batch`."""
    documents = pretraining.split_documents(corpus, config)
    options = {"seed": config.seed, **masking}
    phases = []
    for length, batch_size, steps in pretraining.plan_of(config):
        print(f"Cutting examples of {length} tokens ...", flush=True)
        training, held_out = (
            bert_pretraining.examples(
                folder / f"examples-{length}{suffix}.npy",
                *(corpus, part, length, duplicates),
                seed=config.seed,
                next_sentence=False,
            )
            for suffix, part, duplicates in (
                ("", documents[0], config.num_duplicates),
                ("-held-out", documents[1], 1),
            )
        )
        phases.append(
            Phase(
                length,
                steps,
                PretrainingBatches(corpus, training, tokenizer, length, batch_size, **options),
                EvaluationBatches(corpus, held_out, tokenizer, length, batch_size, **options),
            )
        )
    return phases


def make_backbone(config, tokenizer, micro: dict, **arguments) -> DebertaBackbone:
    """Construct the network of `config.size`, less the attention's terms that are left out."""
    published = {**sizes.DEBERTA, **sizes.DEBERTA_V2}
    is_first = config.size in sizes.DEBERTA or (config.size == "micro" and micro is MICRO)
    return (DebertaBackbone if is_first else DebertaV2Backbone)(
        **{
            **pretraining.size_of(config, micro, published),
            "vocabulary_size": tokenizer.vocabulary_size,
            "dropout": config.dropout,
            "max_sequence_length": pretraining.longest(config),
            "terms": [term for term in TERMS if term not in config.without],
            **arguments,
        }
    )


def make_optimizer(config) -> BertAdam:
    """The optimiser of microsoft/DeBERTa, which is BERT's."""
    schedule = WarmupLinearDecay(config.learning_rate, config.warmup_steps, config.steps)
    return BertAdam(schedule, weight_decay=config.weight_decay)


def mask_decoder_of(config) -> dict:
    """Arguments of the mask decoder; without it, the head is BERT's."""
    return BERT_DECODER if "emd" in config.without else {}


def make_task(config, tokenizer) -> MaskedLM:
    """Build and compile the model of `config.size`."""
    backbone = make_backbone(config, tokenizer, MICRO)
    preprocessor = MaskedLMPreprocessor(tokenizer, **MASKING[config.masking])
    task = MaskedLM(backbone, preprocessor=preprocessor, mask_decoder=mask_decoder_of(config))
    pretraining.compile_task(task, make_optimizer(config), config)
    return task
