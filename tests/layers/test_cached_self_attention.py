import numpy as np
import pytest
from keras import ops

from keras_bert3.layers.cached_self_attention import CachedSelfAttention, CachedTransformerBlock
from keras_bert3.layers.feed_forward import FeedForward
from tests.layer_checks import compiled, to_numpy

RNG = np.random.default_rng(4)
LENGTH, CAPACITY = 6, 9


def block():
    layer = CachedTransformerBlock(
        CachedSelfAttention(2, dropout=0.0, name="attention"), FeedForward(16), dropout=0.0
    )
    layer.build((None, None, 8))
    layer.set_weights([w + RNG.normal(size=w.shape) * 0.3 for w in layer.get_weights()])
    return layer


@pytest.mark.parametrize("pieces", [(6,), (1,) * 6, (4, 1, 1), (2, 3, 1)])
def test_steps_equal_one_causal_pass(pieces):
    layer = block()
    x = ops.convert_to_tensor(RNG.normal(size=(3, LENGTH, 8)).astype("float32"))
    expected = to_numpy(compiled(layer)(x, attention_mask=np.tril(np.ones((3, LENGTH, LENGTH)))))
    step = compiled(layer.step, layer)
    cache, start, received = layer.attention.empty_cache(3, CAPACITY), 0, []
    for piece in pieces:
        places = np.arange(start, start + piece)
        mask = np.broadcast_to(np.arange(CAPACITY) <= places[:, None], (3, piece, CAPACITY))
        output, cache = step(x[:, start : start + piece], cache, start, mask)
        received.append(to_numpy(output))
        start += piece
    np.testing.assert_allclose(np.concatenate(received, 1), expected, atol=1e-5)
    assert [tuple(part.shape) for part in cache] == [(3, CAPACITY, 2, 4)] * 2
    assert not to_numpy(cache[0])[:, LENGTH:].any()
