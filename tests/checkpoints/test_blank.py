import numpy as np

from keras_bert3 import BertBackbone
from keras_bert3.checkpoints.blank import construct_blank
from keras_bert3.checkpoints.variables import variables_by_path
from tests.checkpoints.models import SIZES


def test_weights_are_blank_until_drawn():
    backbone, draw = construct_blank(lambda: BertBackbone(**SIZES))
    weights = variables_by_path(backbone)
    assert all(not np.asarray(weight.numpy()).any() for weight in weights.values())
    draw(["pooler/dense/kernel", "embeddings/norm/gamma", "nobody/knows"])
    kernel = np.asarray(weights["pooler/dense/kernel"].numpy())
    assert 0.01 < kernel.std() < 0.03
    np.testing.assert_array_equal(weights["embeddings/norm/gamma"].numpy(), 1)
    assert not np.asarray(weights["pooler/dense/bias"].numpy()).any()


def test_the_next_model_is_drawn_as_ever():
    construct_blank(lambda: BertBackbone(**SIZES))
    usual = BertBackbone(**SIZES)
    assert np.asarray(usual.token_embeddings.numpy()).std() > 0.01


def test_paths_are_those_of_the_rules():
    backbone, _ = construct_blank(lambda: BertBackbone(**SIZES, name="block_0"))
    paths = list(variables_by_path(backbone))
    assert paths[0] == "embeddings/token/embeddings"
    assert "block_0/attention/query/kernel" in paths and len(paths) == 39
