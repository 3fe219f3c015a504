import numpy as np

from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.self_attention import SelfAttention
from keras_bert3.layers.transformer_block import TransformerBlock
from tests.layer_checks import check_layer, compiled, to_numpy

RNG = np.random.default_rng(5)


def make(dropout=0.0, **arguments):
    block = TransformerBlock(
        SelfAttention(2, dropout=0.0), FeedForward(16), dropout=dropout, **arguments
    )
    block.build((None, None, 8))
    block.set_weights([w + RNG.normal(size=w.shape) * 0.3 for w in block.get_weights()])
    return block


def norm(x, layer):
    gamma, beta = layer.get_weights()
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + layer.epsilon) * gamma + beta


def test_is_post_norm_as_in_figure_1():
    block = make(layer_norm_epsilon=1e-5)
    x = RNG.normal(size=(2, 5, 8)).astype("float32")
    inner = norm(x + to_numpy(block.attention(x)), block.attention_norm)
    expected = norm(inner + to_numpy(block.feed_forward(inner)), block.output_norm)
    np.testing.assert_allclose(to_numpy(block(x)), expected, atol=1e-5)


def test_layer_contract():
    x = RNG.normal(size=(2, 5, 8)).astype("float32")
    check_layer(make(), x, unmoved=("key/bias",))


def test_queries_of_their_own_equal_rows_of_the_square_result():
    block = make()
    x = RNG.normal(size=(2, 6, 8)).astype("float32")
    rows, every = (to_numpy(compiled(block)(q, memory=x)) for q in (x[:, 2:4], x))
    np.testing.assert_allclose(rows, every[:, 2:4], atol=1e-5)


def test_P4_norms_of_activations_whose_squares_exceed_float16_are_finite():
    block = make(dtype="float16")
    for norm_layer in (block.attention_norm, block.output_norm):
        large = 3e4 * RNG.normal(size=(1, 2, 8)).clip(-1, 1)
        normed = to_numpy(norm_layer(large.astype("float16")))
        assert np.isfinite(normed).all() and np.abs(normed).max() > 0.1


def test_dropout_is_on_both_sublayers():
    x = RNG.normal(size=(1, 4, 8)).astype("float32")
    for name in ("attention_dropout", "output_dropout"):
        block = make(dropout=0.5)
        getattr(block, name).rate = 0.0
        noisy, still = (to_numpy(compiled(block)(x, training=t)) for t in (True, False))
        assert not np.allclose(noisy, still)
