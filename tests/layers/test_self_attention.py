import numpy as np
import pytest
from keras import ops

from keras_bert3.layers.self_attention import SelfAttention
from tests.layer_checks import check_layer, compiled, gradients, square_error, to_numpy

RNG = np.random.default_rng(3)


def naive(layer, hidden, memory, mask):
    """A loop over batch, head, query and key, from the formula."""
    weights = {w.path.split("/", 1)[1]: to_numpy(w).astype("float64") for w in layer.weights}

    def project(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    size = layer.head_dim
    query, key, value = project(hidden, "query"), project(memory, "key"), project(memory, "value")
    context = np.zeros(hidden.shape)
    for b in range(len(hidden)):
        for h in range(layer.num_heads):
            part = slice(h * size, (h + 1) * size)
            for q in range(hidden.shape[1]):
                visible = [k for k in range(memory.shape[1]) if mask[b, q, k]]
                scores = [query[b, q, part] @ key[b, k, part] / size**0.5 for k in visible]
                exponentials = np.exp(scores)
                for k, e in zip(visible, exponentials, strict=True):
                    context[b, q, part] += e / exponentials.sum() * value[b, k, part]
    return project(context, "output_projection")


def make(**arguments):
    return SelfAttention(4, kernel_initializer="random_normal", name="attention", **arguments)


def random_biases(layer):
    layer.set_weights([RNG.normal(size=w.shape) * 0.3 for w in layer.get_weights()])


@pytest.mark.parametrize("keys", [5, 9])
def test_equals_a_naive_loop(keys):
    hidden = RNG.normal(size=(2, 5, 16)).astype("float32")
    memory = RNG.normal(size=(2, keys, 16)).astype("float32") if keys != 5 else hidden
    mask = RNG.random((2, 5, keys)) < 0.6
    mask[:, :, 0] = True
    layer = make()
    layer.build(hidden.shape)
    random_biases(layer)
    result = to_numpy(compiled(layer)(hidden, memory=memory, attention_mask=mask))
    np.testing.assert_allclose(result, naive(layer, hidden, memory, mask), atol=1e-5)


def test_layer_contract():
    layer = make(dropout=0.0)
    layer.build((None, None, 16))
    random_biases(layer)
    # The bias of the keys shifts all scores of a query alike, which a softmax does not see.
    check_layer(layer, RNG.normal(size=(2, 5, 16)).astype("float32"), unmoved=("key/bias",))


def test_R4_the_configuration_keeps_every_argument():
    layer = SelfAttention(4, dropout=0.3, kernel_initializer="he_normal", name="a", dtype="float16")
    twin = SelfAttention.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    assert (twin.num_heads, twin.dropout.rate, twin.dtype_policy.name) == (4, 0.3, "float16")


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_M1_a_fully_masked_row_is_finite_and_does_not_touch_the_others(dtype):
    hidden = RNG.normal(size=(2, 3, 16)).astype("float32")
    mask = np.array([[1, 1, 1], [0, 0, 0]])
    layer = make(dtype=dtype)
    layer.build(hidden.shape)
    call = compiled(layer)
    masked, real = (to_numpy(call(hidden, attention_mask=m)) for m in (mask, np.ones_like(mask)))
    assert np.isfinite(masked).all()
    bias = to_numpy(layer.output_projection.bias)
    np.testing.assert_array_equal(masked[1], np.broadcast_to(bias, (3, 16)))
    np.testing.assert_allclose(masked[:1], real[:1], atol=1e-6 if dtype == "float32" else 1e-2)
    found = gradients(layer, lambda: square_error(layer(hidden, attention_mask=mask), 0.0))
    assert all(np.isfinite(gradient).all() for gradient in found)


def test_M7_what_stands_on_padding_does_not_matter():
    hidden = RNG.normal(size=(1, 6, 16)).astype("float32")
    changed = hidden.copy()
    changed[:, 4:] = 1e3
    layer, mask = make(), np.array([[1, 1, 1, 1, 0, 0]])
    layer.build(hidden.shape)
    call = compiled(layer)
    first, second = (to_numpy(call(x, attention_mask=mask))[:, :4] for x in (hidden, changed))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_M11_a_mask_of_one_row_serves_the_whole_batch():
    hidden = RNG.normal(size=(20, 3, 16)).astype("float32")
    row = np.array([[True, True, False]])
    layer = make()
    layer.build(hidden.shape)
    one = compiled(layer)(hidden, attention_mask=row)
    every = compiled(layer)(hidden, attention_mask=np.repeat(row, 20, 0))
    np.testing.assert_array_equal(to_numpy(one), to_numpy(every))


def test_dropout_acts_on_probabilities_in_training_only():
    hidden = ops.ones((1, 4, 16))
    layer = make(dropout=0.5)
    still, again = to_numpy(layer(hidden)), to_numpy(layer(hidden, training=False))
    np.testing.assert_array_equal(still, again)
    assert not np.allclose(still, to_numpy(layer(hidden, training=True)))


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="num_heads=4, width=10"):
        make().build((None, None, 10))
