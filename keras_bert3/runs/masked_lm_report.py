"""What a masked-LM pretraining run learned, beside what needs no learning."""

import itertools
from pathlib import Path

import numpy as np

from keras_bert3.backbones.left_to_right_bert import LeftToRightBertBackbone
from keras_bert3.metrics.masked_lm import (
    evaluate_masked_lm,
    uniform_cross_entropy,
    unigram_cross_entropy,
)
from keras_bert3.runs.pretraining import Phase
from keras_bert3.runs.run_directory import write_json
from keras_bert3.tasks.masked_lm import MaskedLM

_MOST_BATCHES = 200

_MODEL_CARD = """# {name}

A {backbone} of {layers} layers and width {width}, {parameters:,} parameters, pretrained by
keras_bert3 {version} for {steps:,} steps on {data}.

| held-out masked LM | nats a token |
|---|---|
| uniform over {vocabulary:,} tokens | {uniform:.3f} |
| frequencies of single tokens | {unigram:.3f} |
| this model | {loss:.3f} |

Predicted tokens right: {accuracy:.1%} of {predictions:,.0f}.{next_sentence}

    import keras_bert3 as kb

    task = kb.MaskedLM.from_preset("{name}")
    task.fill_mask("the value of the [MASK] is returned .")
"""


def evaluate(task: MaskedLM, corpus, phase: Phase) -> dict[str, float]:
    """Score the held-out examples of a phase (the first 200 batches at most)."""
    batches = list(itertools.islice(phase.evaluation, _MOST_BATCHES))
    counts = _training_counts(corpus, phase)
    return {
        **evaluate_masked_lm(task, batches),
        "uniform_cross_entropy": uniform_cross_entropy(corpus.vocabulary_size),
        "unigram_cross_entropy": unigram_cross_entropy(counts, batches),
        "sequence_length": phase.sequence_length,
    }


def _training_counts(corpus, phase: Phase, most: int = 50_000) -> np.ndarray:
    """Frequencies of ids in the training examples (the first 50,000), `[v]`."""
    counts = np.zeros(corpus.vocabulary_size, np.int64)
    for begin_a, length_a, begin_b, length_b, _ in phase.training.examples[:most]:
        for begin, length in ((begin_a, length_a), (begin_b, length_b)):
            np.add.at(counts, corpus.tokens[begin : begin + length], 1)
    return counts


def fill_examples(task: MaskedLM, corpus, phase: Phase, count: int = 3) -> list[tuple[str, str]]:
    """Hide a word in held-out sentences: `(text with [MASK], what the model suggests)`."""
    tokenizer = task.preprocessor.tokenizer
    results = []
    for row in phase.evaluation.examples[:: max(1, len(phase.evaluation.examples) // 50)]:
        ids = corpus.tokens[row[0] : row[0] + min(row[1], 24)].tolist()
        words = [tokenizer.id_to_token(i) for i in ids]
        whole = [
            i
            for i in range(3, len(words) - 1)
            if words[i].isalpha() and len(words[i]) > 2 and words[i + 1][:2] != "##"
        ]
        if len(ids) < 12 or not whole or words[0].startswith("##"):  # cut within a word
            continue
        place = whole[len(whole) // 2]
        text = f"{tokenizer.decode(ids[:place])} [MASK] {tokenizer.decode(ids[place + 1 :])}"
        guesses = task.fill_mask(text, top_k=3)[0]
        suggestions = ", ".join(f"{token} {probability:.0%}" for token, probability in guesses)
        results.append((text, f"{suggestions}  (was: {words[place]})"))
        if len(results) == count:
            break
    return results


def report(folder: Path, config, task: MaskedLM, corpus, phases: list[Phase]) -> dict[str, float]:
    """Print and save the evaluation, three filled masks and the model card of the preset."""
    scores = evaluate(task, corpus, phases[0])
    write_json(folder / "evaluation.json", scores)
    is_masked = not isinstance(task.backbone, LeftToRightBertBackbone)
    kind = "masked" if is_masked else "left-to-right"
    print(f"\nHeld-out {kind} LM, nats per token over {scores['predictions']:,.0f} predictions")
    print(f"  uniform (ln {corpus.vocabulary_size})  {scores['uniform_cross_entropy']:.3f}")
    print(f"  unigram frequencies  {scores['unigram_cross_entropy']:.3f}")
    print(f"  this model           {scores['masked_lm_loss']:.3f}")
    print(f"  accuracy             {scores['masked_lm_accuracy']:.1%}")
    if "next_sentence_accuracy" in scores:
        print(f"Next-sentence accuracy {scores['next_sentence_accuracy']:.1%} (chance: 50%)")
    print()
    for text, suggestions in fill_examples(task, corpus, phases[0]) if is_masked else ():
        print(f"{text}\n    [MASK] = {suggestions}")
    card = _card(folder.resolve() / "preset", config, task, scores)
    (folder / "preset" / "README.md").write_text(card, encoding="utf-8")
    print(f"\nSaved {folder / 'preset'}")
    return scores


def _card(preset: Path, config, task: MaskedLM, scores: dict[str, float]) -> str:
    from keras_bert3.version import __version__

    accuracy = scores.get("next_sentence_accuracy")
    sentence = "" if accuracy is None else f" Next-sentence pairs right: {accuracy:.1%}."
    return _MODEL_CARD.format(
        name=preset.name,
        backbone=type(task.backbone).__name__,
        layers=task.backbone.num_layers,
        width=task.backbone.hidden_dim,
        parameters=task.count_params(),
        version=__version__,
        steps=config.steps,
        data=", ".join(config.data) or "the documentation that comes with Python",
        vocabulary=task.backbone.vocabulary_size,
        uniform=scores["uniform_cross_entropy"],
        unigram=scores["unigram_cross_entropy"],
        loss=scores["masked_lm_loss"],
        accuracy=scores["masked_lm_accuracy"],
        predictions=scores["predictions"],
        next_sentence=sentence,
    )
