import keras
import numpy as np
import pytest

from keras_bert3 import BertBackbone
from keras_bert3.checkpoints.blank import blank, give, is_blank, settle
from keras_bert3.checkpoints.variables import variables_by_path
from tests.checkpoints.models import SIZES
from tests.layer_checks import to_numpy


def construct():
    return BertBackbone(**SIZES)


def test_weights_take_what_they_are_given_and_are_drawn_otherwise():
    value = np.arange(64.0).reshape(8, 8)
    transposed = np.arange(64.0, dtype="float32").reshape(8, 8).T
    strided = np.arange(128.0, dtype="float32").reshape(8, 16)[:, ::2]
    with blank(construct) as backbone:
        weights = variables_by_path(backbone)
        assert all(is_blank(weight) for weight in weights.values())
        given = {
            "block_0/attention/query/kernel": value,
            "block_0/attention/key/kernel": transposed,
            "block_0/attention/value/kernel": strided,
        }
        for path, array in given.items():
            give(weights[path], array)
    assert not any(is_blank(weight) for weight in weights.values())
    for path, array in given.items():
        assert keras.backend.standardize_dtype(weights[path].dtype) == "float32"
        np.testing.assert_array_equal(to_numpy(weights[path]), array)
    assert 0.01 < to_numpy(weights["pooler/dense/kernel"]).std() < 0.03
    np.testing.assert_array_equal(to_numpy(weights["embeddings/norm/gamma"]), 1)


def test_half_precision_variables_take_float32_values():
    with blank(lambda: BertBackbone(**SIZES, dtype="bfloat16")) as backbone:
        weight = backbone.pooler.dense.kernel
        give(weight, np.full((8, 8), 1 / 3, "float32"))
    assert keras.backend.standardize_dtype(weight.value.dtype) == "bfloat16"
    np.testing.assert_allclose(to_numpy(weight), 1 / 3, rtol=1e-2)


def test_what_is_given_is_trained_without_touching_its_source():
    value = np.ones((8, 8), "float32")
    with blank(construct) as backbone:
        give(backbone.pooler.dense.kernel, value.copy())
    backbone.pooler.dense.kernel.assign(np.zeros((8, 8)))
    assert not to_numpy(backbone.pooler.dense.kernel).any() and value.all()


def test_an_error_leaves_nothing_behind_and_draws_nothing():
    with pytest.raises(KeyError), blank(construct) as backbone:
        raise KeyError
    assert is_blank(backbone.token_embeddings)
    with keras.StatelessScope():
        pass
    assert is_blank(backbone.token_embeddings)
    usual = construct()
    assert to_numpy(usual.token_embeddings).std() > 0.01


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_halfway_spoils_no_later_model(error):
    def fail(shape, dtype=None):
        raise error

    with pytest.raises(error), blank(construct) as backbone:
        backbone.embeddings.norm.gamma._initializer = fail
    with blank(construct) as usual:
        pass
    assert to_numpy(usual.token_embeddings).std() > 0.01


def test_an_error_of_the_constructor_leaves_nothing_behind():
    made = []

    def construct_in_part():
        made.append(construct())
        raise TypeError

    with pytest.raises(TypeError), blank(construct_in_part):
        pass
    with blank(construct):
        pass
    assert is_blank(made[0].token_embeddings)


def test_weights_can_be_settled_before_the_end():
    with blank(construct) as backbone:
        settle(backbone, keras.initializers.Ones())
        backbone.pooler.dense.bias.assign(np.full(8, 3.0))
    np.testing.assert_array_equal(to_numpy(backbone.pooler.dense.kernel), 1)
    np.testing.assert_array_equal(to_numpy(backbone.pooler.dense.bias), 3)


def test_paths_are_those_of_the_rules():
    with blank(lambda: BertBackbone(**SIZES, name="block_0")) as backbone:
        paths = list(variables_by_path(backbone))
    assert paths[0] == "embeddings/token/embeddings"
    assert "block_0/attention/query/kernel" in paths and len(paths) == 39
