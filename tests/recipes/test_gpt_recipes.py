"""`recipes/zero_shot.py` and `recipes/transfer_analysis.py` on a model that knows nothing."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert3 import CausalLM, CausalLMPreprocessor, GPTBackbone
from keras_bert3.runs import zero_shot
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
def data(tmp_path):
    folder = tmp_path / "SST-2"
    folder.mkdir()
    rows = [f"{text}\t{i % 2}" for i, text in enumerate(TEXTS)]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("sentence\tlabel\n" + "\n".join(rows) + "\n")
    return folder


def test_zero_shot(preset, data, capsys):
    flags = ["--preset", preset, "--data", f"sst2={data / 'dev.tsv'}"]
    (row,) = load("zero_shot").main(flags)
    assert (row["model"], row["task"], row["n"]) == (preset, "sst2", 8)
    assert "| sst2     |     8 | accuracy | 0.500 ± 0.177 |" in capsys.readouterr().out


def test_zero_shot_over_the_steps_of_a_run(preset, data, tmp_path, monkeypatch):
    asked, measure = [], zero_shot.measure

    def noting(task, *rest):
        asked.append(task.get_weights())
        return measure(task, *rest)

    monkeypatch.setattr(zero_shot, "measure", noting)
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(preset, run / "presets" / "step-00000004")
    task = CausalLM.from_preset(preset)
    for weight in task.weights:
        weight.assign(weight.value * -3.0)
    task.save_to_preset(run / "preset")
    (run / "config.json").write_text('{"steps": 9}')
    flags = ["--data", f"sst2={data / 'dev.tsv'}", "--output", str(out)]
    rows = load("zero_shot").main(["--run", str(run), *flags])
    assert [row["model"] for row in rows] == [4, 9]
    assert json.loads((out / "results.json").read_text()) == rows
    assert "| 9 | " in (out / "results.md").read_text()
    assert (out / "results.png").read_bytes().startswith(b"\x89PNG")
    # One program is compiled for all steps; each has its own weights.
    for first, last in zip(*asked, strict=True):
        np.testing.assert_array_equal(last, np.float32(-3.0) * first)


def test_transfer_analysis(preset, data, tmp_path, capsys):
    out = tmp_path / "out"
    flags = ["--preset", preset, "--data", str(data), "--epochs", "1", "--output", str(out)]
    flags += ["--batch-size", "4", "--sequence-length", "8"]
    module = load("transfer_analysis")
    with pytest.raises(ValueError, match="k up to 1. Received: 'layers=7'"):
        module.main([*flags, "--variants", "layers=7"])
    assert not out.exists()
    means = module.main([*flags, "--variants", "layers"])
    assert set(means) == {"layers=0", "layers=1"} and all(0 <= v <= 1 for v in means.values())
    assert "| the most frequent label | 0.5000 | | |" in capsys.readouterr().out
    names = {"metrics.csv", "results.md", "results.json", "results.png", "finished.json"}
    assert names <= {path.name for path in out.iterdir()}
