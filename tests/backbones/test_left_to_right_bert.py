import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.checkpoints import google_bert, huggingface
from tests.layer_checks import to_numpy
from tests.tasks import toy


@pytest.fixture(scope="module")
def backbone():
    size = {**toy.SIZE, "vocabulary_size": 24, "initializer_range": 0.5}
    return kb.LeftToRightBertBackbone(**size)


def inputs(ids, padding=0):
    ids = np.pad(np.array([ids]), ((0, 0), (0, padding)))
    mask = np.arange(ids.shape[1])[None] < ids.shape[1] - padding
    return {"token_ids": ids, "padding_mask": mask}


def test_what_stands_on_the_right_is_not_seen(backbone):
    hidden = [
        to_numpy(backbone(inputs(ids))["sequence_output"])
        for ids in ([2, 7, 8, 9, 3], [2, 7, 8, 11, 3])
    ]
    changed = np.abs(hidden[0] - hidden[1]).max((0, 2))
    assert changed[:3].max() == 0 and changed[3:].min() > 1e-3


def test_classifiers_read_the_last_real_token(backbone):
    outputs = backbone(inputs([2, 7, 8, 3]))
    kernel, bias = (to_numpy(weight.value) for weight in backbone.pooler.weights)
    last = to_numpy(outputs["sequence_output"])[0, 3]
    expected = np.tanh(last @ kernel + bias)
    np.testing.assert_allclose(to_numpy(outputs["pooled_output"])[0], expected, atol=1e-5)
    padded = backbone(inputs([2, 7, 8, 3], padding=1))
    np.testing.assert_allclose(to_numpy(padded["pooled_output"])[0], expected, atol=1e-5)


def test_no_format_of_berts_takes_it_for_bert(backbone, tmp_path):
    for save in (google_bert.save_google_bert, huggingface.save_huggingface):
        with pytest.raises(ValueError, match="LeftToRightBertBackbone"):
            save(backbone, tmp_path / "bert")
