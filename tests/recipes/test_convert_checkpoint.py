import importlib

import pytest

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints import preset
from tests.checkpoints.models import assert_same_weights, backbone, masked_lm, tokenizer


@pytest.fixture(scope="module")
def main():
    pytest.importorskip("tyro")
    return importlib.import_module("recipes.convert_checkpoint").main


def convert(main, source, target, *options):
    main(["--source", str(source), "--target", str(target), *options])


def test_to_huggingface_and_back(main, tmp_path, capsys):
    saved = masked_lm(tokenizer=tokenizer(lowercase=False))
    preset.save_task(saved, tmp_path / "a")
    convert(main, tmp_path / "a", tmp_path / "b", "--layout", "huggingface")
    convert(main, tmp_path / "b", tmp_path / "c")
    loaded = MaskedLM.from_preset(tmp_path / "c")
    assert_same_weights(saved, loaded)
    assert loaded.preprocessor.tokenizer.lowercase is False
    assert "loaded: 46" in capsys.readouterr().out


def test_to_google_without_heads(main, tmp_path):
    pytest.importorskip("tensorflow", exc_type=ImportError)
    saved = masked_lm(tokenizer=tokenizer())
    preset.save_task(saved, tmp_path / "a")
    convert(main, tmp_path / "a", tmp_path / "b", "--layout", "google", "--no-heads")
    loaded, report = preset.read_backbone(tmp_path / "b", BertBackbone)
    assert_same_weights(saved.backbone, loaded)
    assert not report.unexpected
    assert (tmp_path / "b" / "vocab.txt").exists()


def test_a_backbone_keeps_its_tokenizer(main, tmp_path):
    preset.save_backbone(backbone(), tmp_path / "a", tokenizer=tokenizer())
    convert(main, tmp_path / "a", tmp_path / "b")
    assert preset.read_tokenizer(tmp_path / "b").vocabulary_size == 24


def test_help_needs_no_keras(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--layout" in capsys.readouterr().out
