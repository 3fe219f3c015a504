"""`recipes/zero_shot.py` and `recipes/transfer_analysis.py` on a model that knows nothing."""

import importlib.util
import sys
from pathlib import Path

import pytest

from keras_bert3 import CausalLM, CausalLMPreprocessor, GPTBackbone
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair

RECIPES = Path(__file__).parents[2] / "recipes"
TEXTS = ["a joy to see", "a bore to see", "pure joy", "what a bore"] * 2


def load(name):
    spec = importlib.util.spec_from_file_location(f"{name}_recipe", RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset") / "lm"
    tokenizer = train_byte_pair(TEXTS, 20, "bert")
    size = {"num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16, "dropout": 0.0}
    backbone = GPTBackbone(tokenizer.vocabulary_size, 1, max_sequence_length=16, **size)
    CausalLM(backbone, CausalLMPreprocessor(tokenizer)).save_to_preset(folder)
    return str(folder)


@pytest.fixture
def table(tmp_path):
    rows = [f"{text}\t{i % 2}" for i, text in enumerate(TEXTS)]
    (tmp_path / "table.tsv").write_text("sentence\tlabel\n" + "\n".join(rows) + "\n")
    return str(tmp_path / "table.tsv")


def test_zero_shot(preset, table, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    flags = ["--preset", preset, "--data", f"sst2={table}", "--table", str(out)]
    (row,) = load("zero_shot").main(flags)
    assert (row["preset"], row["task"], row["n"]) == (preset, "sst2", 8)
    assert "| sst2     |     8 | accuracy | 0.500 ± 0.177 |" in capsys.readouterr().out
    assert out.read_text().startswith("preset,task,n,metric,chance,score,error\n")


def test_transfer_analysis(preset, table, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    flags = ["--preset", preset, "--training", table, "--validation", table, "--epochs", "1"]
    flags += ["--batch-size", "4", "--sequence-length", "8", "--table", str(out)]
    module = load("transfer_analysis")
    means = module.main([*flags, "--variants", "full", "layers=0"])
    assert set(means) == {"full", "layers=0"} and all(0 <= v <= 1 for v in means.values())
    assert len(out.read_text().splitlines()) == 3
    assert "most frequent label 0.5000, n = 8" in capsys.readouterr().out
    with pytest.raises(ValueError, match="k up to 1. Received: 'layers=7'"):
        module.main([*flags, "--variants", "layers=7"])
