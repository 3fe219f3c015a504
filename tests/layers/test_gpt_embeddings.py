import numpy as np
import pytest

from keras_bert3.layers.gpt_embeddings import GPTEmbeddings, count_positions
from tests.layer_checks import to_numpy


def test_positions_count_real_tokens():
    mask = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]])
    expected = [[0, 1, 2, 2, 2], [0, 0, 0, 1, 2], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
    for dtype in ("int32", "float32", "bool"):
        np.testing.assert_array_equal(to_numpy(count_positions(mask.astype(dtype))), expected)


@pytest.mark.parametrize("place", ["matrix", "sum"])
def test_is_the_sum_of_two_rows(place):
    layer = GPTEmbeddings(7, 4, 5, dropout_place=place)
    layer.build((None, None))
    token, position = layer.get_weights()[:2]
    ids, places = np.array([[6, 0, 6]]), np.array([[4, 0, 1]])
    np.testing.assert_allclose(to_numpy(layer(ids, places)), token[ids] + position[places])
    twin = GPTEmbeddings.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
