import json

import pytest

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints import folders, native
from tests.checkpoints.models import assert_same_weights, masked_lm, tokenizer


def test_what_is_written_is_described_and_read(tmp_path):
    saved = masked_lm(tokenizer=tokenizer())
    native.save(saved, tmp_path / "a")
    names = {path.name for path in (tmp_path / "a").iterdir()}
    heads = {"masked_lm_head.weights.h5", "next_sentence_head.weights.h5"}
    assert {"config.json", "model.weights.h5", "vocab.txt", *heads} <= names
    description = native.describe(tmp_path / "a")
    assert (description.backbone_class, description.task_class) == ("BertBackbone", "MaskedLM")
    assert "dtype" not in description.backbone_config and "name" not in description.backbone_config
    assert native.load_tokenizer(tmp_path / "a", description).vocabulary_size == 24
    fresh = masked_lm(seed=5)
    report = native.load_weights(tmp_path / "a", fresh.backbone, {})
    assert_same_weights(saved.backbone, fresh.backbone)
    assert set(report.unexpected) == heads


@pytest.mark.parametrize("shard_size", [10.0, 1e-6])
def test_one_changed_byte_is_noticed(tmp_path, shard_size):
    native.save(masked_lm(), tmp_path / "a", shard_size=shard_size)
    for file in (tmp_path / "a").glob("*.weights.*"):
        whole = file.read_bytes()
        file.write_bytes(whole[:-99] + bytes([whole[-99] ^ 1]) + whole[-98:])
        with pytest.raises(ValueError, match=f"Expected '.*{file.name}' to hold the weights that"):
            native.load_weights(tmp_path / "a", masked_lm().backbone, {})
        file.write_bytes(whole)
    assert native.load_weights(tmp_path / "a", masked_lm().backbone, {}).loaded


def test_checksums_are_looked_up_for_weights_alone(tmp_path):
    native.save(masked_lm(), tmp_path / "a")
    names = ("..", "", "x" * 5000, "../model.weights.h5", "config.json")
    folders.write_json(tmp_path / "a" / native.CHECKSUMS, dict.fromkeys(names, "00"))
    assert native.load_weights(tmp_path / "a", masked_lm().backbone, {}).loaded


def test_weights_may_be_replaced_on_purpose(tmp_path):
    saved, other = masked_lm(), masked_lm(seed=5)
    native.save(saved, tmp_path / "a")
    native.save(other, tmp_path / "b")
    file = "model.weights.h5"
    (tmp_path / "a" / file).write_bytes((tmp_path / "b" / file).read_bytes())
    (tmp_path / "a" / native.CHECKSUMS).unlink()
    native.load_weights(tmp_path / "a", saved.backbone, {})
    assert_same_weights(saved.backbone, other.backbone)


def test_a_folder_that_stands_is_left_alone(tmp_path):
    native.save(masked_lm(), tmp_path / "a")
    before = (tmp_path / "a" / "config.json").read_bytes()
    with pytest.raises(ValueError, match="overwrite"):
        native.save(masked_lm(hidden_dim=4), tmp_path / "a")
    assert (tmp_path / "a" / "config.json").read_bytes() == before


@pytest.mark.parametrize("content", [{}, {"backbone": 3}, {"backbone": {"class": "X"}}])
def test_a_configuration_without_a_backbone_is_named(tmp_path, content):
    (tmp_path / "config.json").write_text(json.dumps({"format": native.FORMAT, **content}))
    with pytest.raises(ValueError, match="config.json' to hold the class and config"):
        native.describe(tmp_path)


def test_only_public_classes_are_found():
    class Mine(MaskedLM):
        pass

    assert native.public_class("BertBackbone") is BertBackbone
    assert native.public_class("Mine", Mine) is Mine
    for name in ("Mine", "checkpoints", "os", "__version__"):
        with pytest.raises(ValueError, match="the name of a public class"):
            native.public_class(name)
