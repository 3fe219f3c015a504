import keras
import numpy as np
import pytest

from tests.tasks import toy

tf = pytest.importorskip("tensorflow", exc_type=ImportError)
if keras.backend.backend() != "tensorflow":
    pytest.skip("the graph is TensorFlow's, whatever the backend", allow_module_level=True)

from keras_bert3.serving import dense  # noqa: E402


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_outputs_stay_and_a_bias_follows_each_product(activation):
    backbone = toy.backbone(activation=activation, initializer_range=0.5)
    ids = tf.constant(np.random.default_rng(0).integers(0, 20, (3, 7)), tf.int32)

    def call(ids):
        return backbone({"token_ids": ids, "padding_mask": tf.ones_like(ids)})

    expected = call(ids)
    dense.prepare(backbone)
    function = tf.function(call, autograph=False)
    found = function(ids)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=2e-6)
    nodes = function.get_concrete_function(ids).graph.as_graph_def().node
    products = {node.name for node in nodes if node.op == "MatMul"}
    followed = {node.input[0] for node in nodes if node.op == "BiasAdd"}
    # query, key, value, output; two of the feed-forward network; the pooler
    assert len(products) == 7 and products == followed
    assert "Erfc" not in {node.op for node in nodes}


def test_a_layer_without_bias_and_other_layers_stay():
    layers = keras.Sequential([keras.layers.Dense(3, use_bias=False), keras.layers.Dropout(0.5)])
    x = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")
    expected = layers(x)
    dense.prepare(layers)
    np.testing.assert_allclose(layers(x), expected, atol=1e-6)
    assert layers.layers[0].call(tf.zeros((2, 0, 4))).shape == (2, 0, 3)
