"""What a language model learned, beside what needs no learning."""

import itertools
import math
from pathlib import Path

import numpy as np

from keras_bert3.metrics.causal_lm import evaluate_causal_lm, unigram_perplexity
from keras_bert3.runs.pretraining import Phase
from keras_bert3.runs.run_directory import write_json
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.samplers import Sample
from keras_bert3.tokenizers.byte_pair import END

_MOST_BATCHES = 200
_PROMPT_TOKENS = 8

_MODEL_CARD = """# {name}

A {backbone} of {layers} layers and width {width}, {parameters:,} parameters, pretrained by
keras_bert3 {version} for {steps:,} steps on {data}.

| held-out perplexity | a token | a word |
|---|---|---|
| uniform over {vocabulary:,} tokens | {vocabulary:,} | |
| frequencies of single tokens | {unigram_perplexity:,.1f} | {unigram_word_perplexity:,.0f} |
| this model | {perplexity:,.1f} | {word_perplexity:,.0f} |

Over {tokens:,.0f} tokens.

    import keras_bert3 as kb

    task = kb.CausalLM.from_preset("{name}")
    task.generate("the value of the", max_length=40)
"""


def evaluate(task: CausalLM, phase: Phase) -> dict[str, float]:
    """Score the held-out windows of a phase (the first 200 batches at most).

    Returns:
        What `evaluate_causal_lm` does, and `unigram_perplexity` and `unigram_word_perplexity`: of
        guessing by frequency in the training text alone, the same tokens.
    """
    tokenizer = task.preprocessor.tokenizer
    batches = list(itertools.islice(phase.evaluation, _MOST_BATCHES))
    ends_word = np.array([token.endswith(END) for token in tokenizer.vocabulary])
    scores = evaluate_causal_lm(task, batches, ends_word)
    unigram = unigram_perplexity(phase.training.token_counts(), batches)
    words_a_token = scores["loss"] / math.log(scores["word_perplexity"])
    return {
        **scores,
        "unigram_perplexity": unigram,
        "unigram_word_perplexity": math.exp(min(math.log(unigram) / words_a_token, 700.0)),
        "sequence_length": phase.sequence_length,
    }


def continuation(task: CausalLM, phase: Phase, seed: int) -> tuple[str, str]:
    """Go on with the beginning of the held-out text: the prompt, and it with what follows."""
    prompt = phase.evaluation[0][0]["token_ids"][0, :_PROMPT_TOKENS].tolist()
    prompt = prompt[: max(1, phase.sequence_length - 1)]
    length = min(phase.sequence_length, task.backbone.max_sequence_length)
    written = task.generate([prompt], length, Sample(top_k=40, seed=seed))[0]
    decode = task.preprocessor.tokenizer.decode
    return decode(prompt), decode(written)


def report(folder: Path, config, task: CausalLM, corpus, phases: list[Phase]) -> dict[str, float]:
    """Print and save the evaluation, a sampled continuation and the model card of the preset."""
    phase = phases[-1]
    scores = evaluate(task, phase)
    write_json(folder / "evaluation.json", scores)
    print(f"\nHeld-out perplexity over {scores['tokens']:,.0f} tokens   a token     a word")
    print(f"  uniform                    {corpus.vocabulary_size:16,.0f}")
    for label, prefix in (("unigram frequencies", "unigram_"), ("this model", "")):
        values = [scores[f"{prefix}{name}"] for name in ("perplexity", "word_perplexity")]
        print(f"  {label:26s} {values[0]:16,.1f} {values[1]:10,.0f}")
    if hasattr(task.backbone, "blocks"):
        prompt, written = continuation(task, phase, config.seed)
        print(f"\n{prompt} ...\n    {written[len(prompt) :].strip()}")
    card = _card(folder.resolve() / "preset", config, task, scores)
    (folder / "preset" / "README.md").write_text(card, encoding="utf-8")
    print(f"\nSaved {folder / 'preset'}")
    return scores


def _card(preset: Path, config, task: CausalLM, scores: dict[str, float]) -> str:
    from keras_bert3.version import __version__

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
        **scores,
    )
