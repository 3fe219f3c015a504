import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import keras_bert3 as kb
from keras_bert3.runs import bert_pretraining, deberta_pretraining, replaced_token_pretraining
from tests.runs import corpus

RECIPE = Path(__file__).parents[2] / "recipes" / "pretrain.py"
TINY = ["--backbone", "deberta", "--steps", "16", "--log-every", "16", "--batch-size", "4"]
TINY += ["--vocabulary-size", "60", "--sequence-length", "16", "--long-fraction", "0"]
TINY += ["--warmup-steps", "5", "--learning-rate", "0.005"]
SMALL = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32, "span": 8}
SMALL["initializer_range"] = 0.2


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("pretrain_deberta_recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pretrain_deberta_recipe"] = module
    spec.loader.exec_module(module)
    return module


def run(recipe, folder, monkeypatch, *flags):
    for course in (deberta_pretraining, replaced_token_pretraining):
        monkeypatch.setattr(course, "MICRO", dict(SMALL))
    data = corpus.write(folder / "corpus.txt")
    base = ["--data", str(data), "--data-format", "sentences", "--output", str(folder / "run")]
    return recipe.main([*base, *TINY, *flags])


@pytest.mark.parametrize("part", deberta_pretraining.PARTS)
def test_one_flag_leaves_a_part_out_of_the_model(recipe, monkeypatch, part):
    monkeypatch.setattr(deberta_pretraining, "MICRO", dict(SMALL))
    config = recipe.parse(["--backbone", "deberta", "--without", part])
    task = deberta_pretraining.make_task(config, SimpleNamespace(vocabulary_size=60))
    left = [term for term in ("c2p", "p2c") if term != part]
    assert [list(block.attention.terms) for block in task.backbone.blocks] == [left] * 2
    decoder = task.enhanced_mask_decoder
    expected = (1, "hidden") if part == "emd" else (2, "position_and_hidden")
    assert (decoder.num_steps, decoder.first_query) == expected


def test_flags_choose_the_smallest_preset(recipe):
    for flags, expected in (
        ("", recipe.Config()),
        ("--backbone deberta", recipe.DEBERTA_MICRO),
        ("--backbone=deberta --objective rtd", recipe.RTD_MICRO),
    ):
        assert recipe.parse(flags.split()) == expected
    one = recipe.parse(["--backbone", "deberta", "--objective", "mlm"])
    assert (one.masking, one.steps) == ("n_grams", recipe.DEBERTA_MICRO.steps)
    assert recipe.parse(["--objective", "mlm"]).backbone == "bert"


def test_a_run_without_parts_leaves_a_model_that_fills_masks(recipe, tmp_path, monkeypatch, capsys):
    scores = run(recipe, tmp_path, monkeypatch, "--without", "emd", "p2c")
    folder = tmp_path / "run"
    assert json.loads((folder / "evaluation.json").read_text()) == scores
    assert scores["masked_lm_loss"] < scores["uniform_cross_entropy"]
    assert "[MASK] =" in capsys.readouterr().out
    task = kb.MaskedLM.from_preset(folder / "preset")
    assert isinstance(task.backbone, kb.DebertaBackbone)
    assert task.backbone.terms == ["c2p"] and not task.enhanced_mask_decoder.weights
    assert task.preprocessor.longest_group == 3 and task.preprocessor.whole_words
    assert len(task.fill_mask("the [MASK] sees a green tree.", top_k=2)[0]) == 2


def test_replaced_token_detection_leaves_both_networks(recipe, tmp_path, monkeypatch, capsys):
    scores = run(recipe, tmp_path, monkeypatch, "--objective", "rtd", "--without", "c2p", "p2c")
    folder, printed = tmp_path / "run", capsys.readouterr().out
    assert json.loads((folder / "evaluation.json").read_text()) == scores
    assert scores["masked_lm_loss"] < scores["uniform_cross_entropy"]
    assert 0 < scores["replaced_share"] < 0.25 and scores["replaced_loss"] < 0.6
    assert "[MASK] =" in printed and "base rate" in printed
    task = kb.Task.from_preset(folder / "preset")
    assert isinstance(task, kb.ReplacedTokenDetection)
    backbone = kb.DebertaV2Backbone.from_preset(folder / "discriminator")
    assert backbone.num_layers == task.backbone.num_layers == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("without", ("c2c",), "`without` among emd, c2p, p2c. Received: c2c"),
        ("masking", "lines", "`masking` to be one of tokens, whole_words, n_grams"),
        ("size", "huge", "`size` to be one of micro, base"),
    ],
)
def test_unknown_settings_are_refused_before_any_work(name, value, message):
    config = {"size": "micro", "masking": "n_grams", "without": ()}
    with pytest.raises(ValueError, match=message):
        deberta_pretraining.check(SimpleNamespace(**{**config, name: value}))
    deberta_pretraining.check(SimpleNamespace(**config))
    assert bert_pretraining.MICRO["num_layers"] == 2
