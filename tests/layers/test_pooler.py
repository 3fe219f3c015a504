import numpy as np

from keras_bert3.layers.pooler import Pooler
from tests.layer_checks import check_layer


def test_reads_the_first_token_through_tanh():
    layer = Pooler(name="pooler")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    result = check_layer(layer, x)
    kernel, bias = layer.get_weights()
    np.testing.assert_allclose(result, np.tanh(x[:, 0] @ kernel + bias), atol=1e-6)
