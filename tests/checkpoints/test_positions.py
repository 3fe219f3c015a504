import numpy as np
import pytest

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints import preset, read_backbone, read_task, resize_positions
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.positions import fitted
from tests.checkpoints.models import INPUTS, backbone, logits, masked_lm, tokenizer
from tests.layer_checks import to_numpy

TABLE = "embeddings/position/embeddings"


@pytest.fixture(scope="module")
def saved():
    return masked_lm(tokenizer=tokenizer(), max_sequence_length=16)


@pytest.fixture(scope="module", params=["own", "huggingface"])
def folder(request, saved, tmp_path_factory):
    """The same model in our own layout and in theirs."""
    path = tmp_path_factory.mktemp("model") / request.param
    (preset.save_task if request.param == "own" else save_huggingface)(saved, path)
    return path


def table(model):
    return to_numpy(model.embeddings.position.embeddings)


def test_fewer_positions_are_the_first_rows(folder, saved):
    short, report = read_backbone(folder, BertBackbone, max_sequence_length=6)
    assert short.max_sequence_length == 6
    assert report.reshaped == (f"{TABLE}: (16, 8) -> (6, 8)",)
    assert TABLE in report.loaded and not report.newly_initialised
    np.testing.assert_array_equal(table(short), table(saved.backbone)[:6])


def test_a_task_of_fewer_positions_says_what_it_said(folder, saved):
    task, report = read_task(folder, MaskedLM, max_sequence_length=6)
    assert report.reshaped == (f"{TABLE}: (16, 8) -> (6, 8)",)
    for name, expected in logits(saved).items():
        np.testing.assert_allclose(logits(task)[name], expected, atol=1e-6)
    assert task.newly_initialised == ()
    stored = folder.name == "own"  # theirs says nothing of how texts are cut
    assert task.preprocessor.sequence_length == (6 if stored else None)


def test_more_positions_are_refused_with_both_numbers(folder):
    for load in (BertBackbone.from_preset, MaskedLM.from_preset):
        with pytest.raises(ValueError, match=r"at most 16.*resize_positions.*Received: .*=20"):
            load(folder, max_sequence_length=20)


def test_more_positions_where_they_are_asked_for(saved):
    longer, report = resize_positions(saved, 20)
    assert report.reshaped == (f"{TABLE}: (16, 8) -> (20, 8)",)
    rows = table(longer.backbone)
    np.testing.assert_array_equal(rows[:16], table(saved.backbone))
    assert 0.001 < rows[16:].std() < 0.05, "as in a new model"
    assert longer.preprocessor is saved.preprocessor


def test_fewer_positions_of_a_model_in_hand(saved):
    short, _ = resize_positions(saved, 5)
    assert short.preprocessor.get_config()["sequence_length"] == 5
    np.testing.assert_array_equal(table(short.backbone), table(saved.backbone)[:5])
    alone, _ = resize_positions(backbone(), 5)
    assert table(alone).shape == (5, 8) and INPUTS["token_ids"].shape[1] == 5


def test_lengths_are_cut_and_never_raised():
    config = {"sequence_length": 16, "max_sequence_length": None, "other": 99}
    assert fitted(config, 7) == {**config, "sequence_length": 7}
    assert fitted(config, 17) == config
