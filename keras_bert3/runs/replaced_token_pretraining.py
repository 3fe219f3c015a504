"""DeBERTa v3's pretraining: replaced-token detection, generator and discriminator together."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.runs import bert_pretraining, deberta_pretraining, masked_lm_report, pretraining
from keras_bert3.runs.bert_pretraining import make_tokenizer as make_tokenizer
from keras_bert3.runs.deberta_pretraining import check as check
from keras_bert3.runs.pretraining import Phase
from keras_bert3.runs.run_directory import write_json
from keras_bert3.tasks.replaced_token_detection import (
    ReplacedTokenDetection,
    ReplacedTokenPreprocessor,
)

# A generator is half as deep, but for this size: two blocks are the fewest for a mask decoder.
MICRO = {**bert_pretraining.MICRO, "span": 32}
# lambda of the paper, and for so small a model that of the released code.
WEIGHTS = {"micro": 10.0}
PAPER_WEIGHT = 50.0
# Every chosen token is replaced in the end, so all are shown as [MASK].
SHOWN: dict[str, Any] = {"probabilities": (1.0, 0.0, 0.0)}


def make_phases(folder: Path, config, corpus: TokenizedCorpus, tokenizer) -> list[Phase]:
    """Cut examples of one segment for both sequence lengths."""
    masking = {**deberta_pretraining.MASKING[config.masking], **SHOWN}
    return deberta_pretraining.cut_phases(folder, config, corpus, tokenizer, masking)


def make_task(config, tokenizer) -> ReplacedTokenDetection:
    """Build and compile discriminator and generator."""
    backbone = deberta_pretraining.make_backbone(config, tokenizer, MICRO)
    generator = deberta_pretraining.make_backbone(
        config, tokenizer, MICRO, num_layers=max(2, backbone.num_layers // 2)
    )
    task = ReplacedTokenDetection(
        backbone,
        generator,
        ReplacedTokenPreprocessor(tokenizer, **deberta_pretraining.MASKING[config.masking]),
        discriminator_weight=WEIGHTS.get(config.size, PAPER_WEIGHT),
        mask_decoder=deberta_pretraining.mask_decoder_of(config),
        seed=config.seed,
    )
    pretraining.compile_task(task, deberta_pretraining.make_optimizer(config), config)
    return task


def evaluate_detection(task: ReplacedTokenDetection, batches) -> dict[str, float]:
    """Score the discriminator on what the generator fills in.

    Returns:
        `replaced_loss` (nats a real token), `base_rate_loss` (of who knows only how many tokens are
        replaced), `replaced_share`, `replaced_recall` and `replaced_precision` at probability 1/2.
    """
    scores, labels = [], []
    for x, y, weights in batches:
        outputs = task.predict_on_batch(x)
        replaced = np.zeros(x["token_ids"].shape, bool)
        differs = (outputs["sampled"] != y["masked_lm"]) & (weights["masked_lm"] > 0)
        rows, slots = np.nonzero(differs)
        replaced[rows, x["mask_positions"][rows, slots]] = True
        real = np.asarray(x["padding_mask"], bool) & (weights["masked_lm"].sum(1) > 0)[:, None]
        scores.append(np.asarray(outputs["replaced"], "float64")[..., 0][real])
        labels.append(replaced[real])
    score, label = np.concatenate(scores), np.concatenate(labels)
    share, found = label.mean(), score > 0
    return {
        "replaced_loss": float(np.logaddexp(0, np.where(label, -score, score)).mean()),
        "base_rate_loss": float(-share * np.log(share) - (1 - share) * np.log(1 - share)),
        "replaced_share": float(share),
        "replaced_recall": float((found & label).sum() / label.sum()),
        "replaced_precision": float((found & label).sum() / max(found.sum(), 1)),
    }


def report(folder: Path, config, task: ReplacedTokenDetection, corpus, phases: list[Phase]) -> dict:
    """Print and save both evaluations and three filled masks; write the discriminator's preset."""
    phase, generator = phases[0], task.generator
    generator.preprocessor = task.preprocessor
    generator.newly_initialised = ()  # trained, though not by a `fit` of its own
    scores = masked_lm_report.evaluate(generator, corpus, phase)
    scores |= evaluate_detection(task, itertools.islice(phase.evaluation, 200))
    write_json(folder / "evaluation.json", scores)
    print(f"\nHeld-out, generator, nats a token over {scores['predictions']:,.0f} predictions")
    print(f"  unigram frequencies  {scores['unigram_cross_entropy']:.3f}")
    print(f"  this generator       {scores['masked_lm_loss']:.3f}")
    print(f"Held-out, discriminator, nats a token; {scores['replaced_share']:.1%} are replaced")
    print(f"  base rate            {scores['base_rate_loss']:.3f}")
    print(f"  this discriminator   {scores['replaced_loss']:.3f}")
    print(f"  finds {scores['replaced_recall']:.1%}, of its finds are right ", end="")
    print(f"{scores['replaced_precision']:.1%}\n")
    for text, suggestions in masked_lm_report.fill_examples(generator, corpus, phase):
        print(f"{text}\n    [MASK] = {suggestions}")
    task.discriminator().save_to_preset(folder / "discriminator")
    print(f"\nSaved {folder / 'preset'} (both networks) and {folder / 'discriminator'}")
    return scores
