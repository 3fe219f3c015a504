"""`recipes/add_bilstm.py`: what it writes is what `recipes/finetune.py` takes."""

import importlib.util
import sys
from pathlib import Path

import pytest

import keras_bert3 as kb
from tests.tasks import toy


@pytest.fixture(scope="module")
def recipe():
    path = Path(__file__).parents[2] / "recipes" / "add_bilstm.py"
    spec = importlib.util.spec_from_file_location("add_bilstm_recipe", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_checkpoint_gets_a_bilstm_and_keeps_its_tokenizer(recipe, tmp_path, capsys):
    toy.masked_lm().save_to_preset(tmp_path / "bert")
    flags = ["--preset", str(tmp_path / "bert"), "--output", str(tmp_path / "features")]
    recipe.main([*flags, "--layers", "-2", "-1", "--num-lstm-layers", "2", "--lstm-dim", "3"])
    assert str(tmp_path / "features") in capsys.readouterr().out
    task = kb.TokenClassifier.from_preset(tmp_path / "features", labels=["O", "B-PET"])
    backbone = task.backbone
    assert backbone.layer_numbers == [-2, -1] and not backbone.encoder.trainable_weights
    assert backbone.hidden_dim == 6 and len(backbone.lstm) == 2
    assert task.preprocessor.tokenizer("the cats") == toy.tokenizer()("the cats")
