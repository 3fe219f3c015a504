import csv
import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.runs.kept_presets import kept_presets
from keras_bert3.tokenizers import gpt_text
from keras_bert3.training.optimizers import GPTAdam
from keras_bert3.training.schedules import WarmupCosineDecay
from tests.runs import corpus

RECIPE = Path(__file__).parents[2] / "recipes" / "pretrain.py"
TINY = ["--backbone", "gpt", "--steps", "60", "--log-every", "40", "--batch-size", "4"]
TINY += ["--vocabulary-size", "40", "--sequence-length", "16", "--long-sequence-length", "16"]
TINY += ["--warmup-steps", "5", "--presets-every", "40"]


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("pretrain_gpt_recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pretrain_gpt_recipe"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    """The folder of a run, its scores and what it printed."""
    folder = tmp_path_factory.mktemp("gpt")
    data = corpus.write(folder / "corpus.txt")
    base = ["--data", str(data), "--data-format", "sentences", "--output", str(folder / "run")]
    printed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "builtins.print", lambda *parts, **_: printed.append(" ".join(map(str, parts)))
        )
        scores = recipe.main([*base, *TINY])
    return folder / "run", scores, "\n".join(printed)


def test_a_run_leaves_a_model_that_loads_and_writes(finished):
    folder, scores, printed = finished
    with (folder / "metrics.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["40", "60"]
    assert json.loads((folder / "config.json").read_text())["backbone"] == "gpt"
    assert json.loads((folder / "evaluation.json").read_text()) == scores
    for line in ("uniform", "unigram frequencies", "this model", "a token     a word", "..."):
        assert line in printed
    assert list(kept_presets(folder)) == [0, 40, 60]
    task = kb.CausalLM.from_preset(folder / "preset")
    assert task.backbone.max_sequence_length == 16
    tokenizer = task.preprocessor.tokenizer
    assert tokenizer.decode(tokenizer("The cat sees.")) == "the cat sees ."
    assert "a word" in (folder / "preset" / "README.md").read_text()


def test_the_figures_are_those_of_the_held_out_text(finished):
    folder, scores, _ = finished
    text = TokenizedCorpus.open(folder / "corpus")
    begins = text.sentence_offsets[text.document_offsets]
    known, tokens = (
        np.concatenate([text.tokens[begins[d] : begins[d + 1]] for d in part])
        for part in text.split(1 / text.num_documents, 12345)
    )
    vocabulary = kb.BytePairTokenizer.load(folder / "preset").vocabulary
    assert scores["tokens"] == len(tokens) - 1
    counts = np.array([(known == i).sum() + 1 for i in range(len(vocabulary))])
    unigram = -np.log(counts / counts.sum())[tokens[1:]].sum()
    words = sum(vocabulary[i].endswith("</w>") for i in tokens[1:])
    assert scores["unigram_perplexity"] == pytest.approx(math.exp(unigram / (len(tokens) - 1)))
    assert scores["unigram_word_perplexity"] == pytest.approx(math.exp(unigram / words))
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    loss = scores["loss"] * scores["tokens"]
    assert scores["word_perplexity"] == pytest.approx(math.exp(loss / words))


def test_it_learns_more_than_frequencies(finished):
    scores = finished[1]
    assert scores["perplexity"] < 0.6 * scores["unigram_perplexity"]


def test_the_course_is_the_papers(recipe, tmp_path):
    from keras_bert3.runs import gpt_pretraining, pretraining

    config = recipe.parse([*TINY, "--learning-rate", "0.25", "--weight-decay", "0.5"])
    assert recipe.parse(["--backbone", "gpt"]) == recipe.GPT_MICRO
    assert pretraining.course_of(config) is gpt_pretraining
    tokenizer = kb.BytePairTokenizer(["<unk>", "a</w>"], [], "bert")
    task = gpt_pretraining.make_task(config, tokenizer)
    assert isinstance(task.optimizer, GPTAdam) and task.optimizer.matrix_decay == 0.5
    schedule = task.optimizer._learning_rate
    assert isinstance(schedule, WarmupCosineDecay)
    assert (schedule.peak, schedule.warmup_steps, schedule.total_steps) == (0.25, 5, 60)
    paper = recipe.PRESETS["gpt-base"][1]
    assert (paper.learning_rate, paper.warmup_steps, paper.batch_size) == (2.5e-4, 2000, 64)
    assert (paper.sequence_length, paper.long_fraction, paper.dropout) == (512, 0.0, 0.1)


def test_wrong_settings_are_refused_before_any_work(recipe, tmp_path, monkeypatch):
    output = ["--output", str(tmp_path / "run")]
    with pytest.raises(ValueError, match="one of micro, base, or .*Received: 'huge'"):
        recipe.main([*TINY, *output, "--size", "huge"])
    with pytest.raises(ValueError, match="one of lm. Received: 'mlm'"):
        recipe.main([*TINY, *output, "--objective", "mlm"])
    for flags, message in (
        (["--masking", "whole_words"], "masking=tokens for gpt.*masking=whole_words"),
        (["--no-lowercase"], "lowercase=True for gpt.*lowercase=False"),
    ):
        with pytest.raises(ValueError, match=message):
            recipe.main([*TINY, *output, *flags])
    gpt_text._published_splitter.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match=r"keras-bert3\[gpt\]"):
        recipe.main([*TINY, *output])
    gpt_text._published_splitter.cache_clear()
    assert not (tmp_path / "run").exists()
