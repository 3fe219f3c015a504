import keras
import numpy as np
import pytest

from keras_bert3.layers.embeddings import BertEmbeddings, Embedding, PositionEmbedding
from tests.layer_checks import check_layer, to_numpy

IDS = np.array([[1, 4, 4, 0], [2, 2, 2, 3]], "int32")


def test_embedding_contract():
    layer = Embedding(5, 3, name="table")
    expected = check_layer(layer, IDS)
    np.testing.assert_array_equal(expected, layer.get_weights()[0][IDS])


def test_ids_survive_half_precision():
    # 2049 is not a float16 number
    layer = Embedding(3000, 2, dtype="mixed_float16")
    ids = np.array([[2049]], "float32")
    np.testing.assert_allclose(to_numpy(layer(ids))[0, 0], layer.get_weights()[0][2049], atol=1e-4)


def test_repeated_ids_reach_adam_as_one_gradient():
    layer = Embedding(5, 3, "ones")
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layer(inputs))
    optimizer = keras.optimizers.Adam(1e-2)
    model.compile(optimizer, keras.losses.MeanSquaredError(reduction="sum"), jit_compile=False)
    model.fit(np.array([[4, 4, 4, 1]]), np.zeros((1, 4, 3)), verbose=0)
    # d/dx sum_k (1/3) x_k^2 = 2/3 at x = 1, three times for id 4, once for id 1
    velocity = next(v for v in optimizer.variables if "velocity" in v.path)
    expected = np.zeros((5, 3))
    expected[4], expected[1] = (3 * 2 / 3) ** 2 * 1e-3, (2 / 3) ** 2 * 1e-3
    np.testing.assert_allclose(to_numpy(velocity), expected, rtol=1e-4)


def test_positions_do_not_depend_on_content():
    layer = PositionEmbedding(6)
    short = to_numpy(layer(np.ones((2, 4, 3), "float32")))
    assert short.shape == (1, 4, 3)
    np.testing.assert_array_equal(short[0], layer.get_weights()[0][:4])


def test_S1_sequences_beyond_the_table_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match="at most 6 tokens.*Received: sequence length 7"):
        PositionEmbedding(6)(np.ones((1, 7, 3), "float32"))


def test_bert_embeddings_are_the_normalised_sum():
    layer = BertEmbeddings(5, 8, max_sequence_length=6, dropout=0.0, name="embeddings")
    segments = np.array([[0, 0, 1, 1]] * 2, "int32")
    layer.build(IDS.shape)
    layer.set_weights([np.random.default_rng(1).normal(size=w.shape) for w in layer.get_weights()])
    result = check_layer(layer, IDS, segments)
    token, segment, position, gamma, beta = layer.get_weights()
    summed = token[IDS] + segment[segments] + position[:4]
    centred = summed - summed.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * gamma + beta
    np.testing.assert_allclose(result, expected, atol=1e-5)
