import os

import keras
import numpy as np
import pytest

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.keras_hub import from_keras_hub
from tests.checkpoints.models import INPUTS, SIZES, VOCABULARY, assert_same_weights, scrambled

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
keras_hub = pytest.importorskip("keras_hub", exc_type=ImportError)


@pytest.fixture(scope="module")
def theirs():
    return scrambled(keras_hub.models.BertBackbone(**SIZES))


@pytest.fixture
def folder(theirs, tmp_path):
    theirs.save_to_preset(str(tmp_path / "kh"))
    return tmp_path / "kh"


def test_a_live_backbone_computes_the_same(theirs):
    ours = from_keras_hub(theirs)(INPUTS)
    expected = theirs(INPUTS)
    real = INPUTS["padding_mask"] == 1
    for name, rows in (("sequence_output", real), ("pooled_output", slice(None))):
        received = keras.ops.convert_to_numpy(ours[name])[rows]
        wanted = keras.ops.convert_to_numpy(expected[name])[rows]
        np.testing.assert_allclose(received, wanted, atol=2e-5, rtol=0)
        assert np.abs(wanted).std() > 0.1


def test_a_preset_on_disk_is_the_live_backbone(theirs, folder):
    loaded, report = preset.read_backbone(folder, BertBackbone)
    assert_same_weights(from_keras_hub(theirs), loaded)
    assert not (report.newly_initialised or report.unexpected)
    assert (loaded.activation, loaded.layer_norm_epsilon) == ("gelu_tanh", 1e-12)


def test_the_tokenizer_comes_along(folder):
    (folder / "assets" / "tokenizer").mkdir(parents=True)
    (folder / "assets" / "tokenizer" / "vocabulary.txt").write_text("\n".join(VOCABULARY) + "\n")
    config = '{"config": {"lowercase": true, "strip_accents": false}}'
    (folder / "tokenizer.json").write_text(config)
    heads = ("masked_lm_head", "next_sentence_head")
    task = MaskedLM.from_preset(folder, new_heads=heads)
    assert task.preprocessor.tokenizer.vocabulary == VOCABULARY
    assert task.preprocessor.tokenizer.lowercase is True
    assert task.preprocessor.tokenizer.strip_accents is False


def test_heads_are_not_read(folder):
    with pytest.raises(ValueError, match="new_heads="):
        MaskedLM.from_preset(folder)


def test_broken_presets_are_named(folder):
    file = folder / "model.weights.h5"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ValueError, match="Expected the weights of a KerasHub preset at '.*h5'"):
        preset.load_backbone(folder, BertBackbone)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("BertBackbone", "GemmaBackbone"))
    with pytest.raises(ValueError, match="Expected a BertBackbone.*'GemmaBackbone'"):
        preset.load_backbone(folder, BertBackbone)
