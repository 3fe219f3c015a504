import contextlib
import csv
import importlib.util
import io
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.runs import bert_pretraining
from tests.runs import corpus

RECIPE = Path(__file__).parents[2] / "recipes" / "pretrain.py"
TINY = ["--steps", "4", "--log-every", "2", "--batch-size", "4", "--long-fraction", "0.25"]
TINY += ["--vocabulary-size", "60", "--num-duplicates", "2", "--warmup-steps", "1"]
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 64, "intermediate_dim": 128}
MICRO = bert_pretraining.MICRO


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("pretrain_recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pretrain_recipe"] = module
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert_pretraining, "MICRO", SMALL)
        yield module


def run(recipe, tmp_path, *flags, name="run"):
    data = tmp_path / "corpus.txt"
    if not data.exists():
        corpus.write(data)
    base = ["--data", str(data), "--data-format", "sentences", "--output", str(tmp_path / name)]
    return recipe.main([*base, *TINY, *flags])


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    """A run to the end: its folder, scores and what it printed."""
    folder, printed = tmp_path_factory.mktemp("pretrain"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        scores = run(recipe, folder, "--dropout", "0.1")
    return folder / "run", scores, printed.getvalue()


def test_a_run_leaves_a_model_that_loads_and_fills_masks(finished):
    folder, scores, printed = finished
    with (folder / "metrics.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["2", "3", "4"]
    assert json.loads((folder / "config.json").read_text())["steps"] == 4
    assert json.loads((folder / "evaluation.json").read_text()) == scores
    for line in ("uniform (ln", "unigram frequencies", "this model", "(chance: 50%)", "[MASK] ="):
        assert line in printed
    task = kb.MaskedLM.from_preset(folder / "preset")
    assert len(task.fill_mask("the [MASK] sees a green tree.", top_k=2)[0]) == 2
    assert "nats a token" in (folder / "preset" / "README.md").read_text()


def test_the_same_seed_gives_the_same_losses(recipe, tmp_path, finished):
    assert run(recipe, tmp_path, "--dropout", "0.1") == finished[1]


def test_it_learns_more_than_frequencies(recipe, tmp_path, monkeypatch):
    flags = ["--steps", "200", "--log-every", "200", "--long-fraction", "0", "--batch-size", "16"]
    monkeypatch.setattr(bert_pretraining, "MICRO", MICRO)
    scores = run(recipe, tmp_path, *flags, "--warmup-steps", "20", "--vocabulary-size", "90")
    assert scores["masked_lm_loss"] < scores["unigram_cross_entropy"] - 0.5


def test_without_data_it_reads_the_documentation_of_python(recipe, tmp_path, capsys, monkeypatch):
    from keras_bert3.runs import pretraining

    all_of_it = pretraining.python_documentation
    monkeypatch.setattr(
        pretraining, "python_documentation", lambda: itertools.islice(all_of_it(), 40)
    )
    flags = ["--num-duplicates", "1", "--vocabulary-size", "500", "--long-fraction", "0"]
    scores = recipe.main([*TINY, *flags, "--output", str(tmp_path / "run")])
    assert scores["predictions"] > 20
    assert "40 documents" in capsys.readouterr().out


def test_without_next_sentence_prediction(recipe, tmp_path):
    scores = run(
        recipe, tmp_path, "--objective", "mlm", "--masking", "whole_words", "--long-fraction", "0"
    )
    assert "next_sentence_accuracy" not in scores
    assert np.isfinite(scores["masked_lm_loss"])


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (None, [], "corpus.txt"),
        (b"", [], "empty"),
        (b"good line\n\nbad \xff line\n", [], "byte"),
        (b"one. two.\nthree.\n", [], "Expected at least 4 documents.*Received: 1"),
        (b"one\n\ntwo\n\nthree\n\nfour\n\nfive\n", [], "sentence"),
    ],
    ids=["missing", "empty", "not UTF-8", "one document", "one-sentence documents"],
)
def test_bad_text_is_refused_and_nothing_is_left(recipe, tmp_path, text, flags, message):
    data = tmp_path / "corpus.txt"
    if text is not None:
        data.write_bytes(text)
    base = ["--data", str(data), "--data-format", "sentences", "--output", str(tmp_path / "run")]
    with pytest.raises(ValueError, match=message):
        recipe.main([*base, *TINY, *flags])
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_without_special_tokens_is_refused(recipe, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\nthe\n")
    with pytest.raises(ValueError, match=r"\[SEP\]"):
        run(recipe, tmp_path, "--vocabulary", str(vocabulary))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--backbone", "elmo"], "Expected `backbone` to be one of bert.*'elmo'"),
        (["--objective", "lm"], "Expected `objective` of bert to be one of mlm.*'lm'"),
        (["--masking", "letters"], "Expected `masking` to be one of tokens.*'letters'"),
        (["--without", "emd"], "Expected `without` for DeBERTa's parts alone. Received: emd"),
    ],
)
def test_unknown_choices_are_refused_before_any_work(recipe, tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        run(recipe, tmp_path, *flags)
    assert not (tmp_path / "run").exists()


def test_an_unknown_size_is_refused_before_any_work(recipe, tmp_path):
    with pytest.raises(ValueError, match="Expected `size` to be one of micro, tiny.*'huge'"):
        run(recipe, tmp_path, "--size", "huge")
    assert not (tmp_path / "run").exists()


def test_an_output_directory_with_another_run_is_refused(recipe, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="new or empty.*config.json"):
        run(recipe, tmp_path)


def test_help_answers_without_importing_keras():
    program = (
        "import runpy, sys; sys.argv = ['pretrain.py', 'micro', '--help']\n"
        f"try: runpy.run_path({str(RECIPE)!r}, run_name='__main__')\n"
        "except SystemExit: print('keras' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.strip().endswith("False"), result.stderr
    assert "--sequence-length" in result.stdout
