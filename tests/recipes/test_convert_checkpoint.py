import importlib

import keras
import pytest

from keras_bert3 import BertBackbone, DebertaV2Backbone, GPTBackbone, MaskedLM
from keras_bert3.checkpoints import google_bert, preset
from keras_bert3.checkpoints.blank import blank, settle
from tests.checkpoints.models import (
    assert_same_weights,
    backbone,
    masked_lm,
    scrambled,
    tokenizer,
)


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


def test_googles_files_without_heads_are_a_source(main, tmp_path, capsys):
    pytest.importorskip("tensorflow", exc_type=ImportError)
    google_bert.save_google_bert(backbone(), tmp_path / "a")
    convert(main, tmp_path / "a", tmp_path / "b", "--layout", "huggingface")
    assert_same_weights(backbone(), preset.load_backbone(tmp_path / "b", BertBackbone))
    assert "wrote BertBackbone" in capsys.readouterr().out


def test_to_openai_and_on_to_huggingface(main, tmp_path):
    with blank(lambda: GPTBackbone(20, 1, 1, 64, 256, max_sequence_length=8)) as network:
        settle(network, keras.initializers.Zeros())
    saved = scrambled(network)
    preset.save_backbone(saved, tmp_path / "a")
    convert(main, tmp_path / "a", tmp_path / "b", "--layout", "openai")
    convert(main, tmp_path / "b", tmp_path / "c", "--layout", "huggingface")
    assert_same_weights(saved, preset.load_backbone(tmp_path / "c", GPTBackbone))


@pytest.mark.parametrize("layout", ["google", "openai"])
def test_a_family_that_the_layout_has_not_is_named(main, tmp_path, layout):
    with blank(
        lambda: DebertaV2Backbone(20, 1, 1, 8, 12, span=4, max_sequence_length=8)
    ) as network:
        settle(network, keras.initializers.Zeros())
    preset.save_backbone(network, tmp_path / "a")
    with pytest.raises(ValueError, match="Received: .*DebertaV2Backbone"):
        convert(main, tmp_path / "a", tmp_path / "b", "--layout", layout)
    assert not (tmp_path / "b").exists()


def test_a_backbone_keeps_its_tokenizer(main, tmp_path):
    preset.save_backbone(backbone(), tmp_path / "a", tokenizer=tokenizer())
    convert(main, tmp_path / "a", tmp_path / "b")
    assert preset.read_tokenizer(tmp_path / "b").vocabulary_size == 24


def test_help_needs_no_keras(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--layout" in capsys.readouterr().out
