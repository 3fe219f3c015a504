import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert3.layers.disentangled_self_attention import (
    DisentangledSelfAttention,
    SharedDisentangledSelfAttention,
)
from tests.layer_checks import (
    assert_training_moves,
    call_with_unknown_sizes,
    compiled,
    square_error,
    to_numpy,
)

RNG = np.random.default_rng(4)
WIDTH, SPAN = 16, 5
LAYOUTS = pytest.mark.parametrize("shared", [False, True], ids=["v1", "v2"])


def make(shared=False, random=True, **arguments):
    kind = SharedDisentangledSelfAttention if shared else DisentangledSelfAttention
    sizes = {"span": SPAN, **({"max_position": 12} if shared else {})}
    layer = kind(4, **{**sizes, **arguments}, name="attention")
    layer.build((None, None, WIDTH))
    if random:
        layer.set_weights([RNG.normal(size=w.shape) * 0.3 for w in layer.get_weights()])
    return layer


def table(rows=2 * SPAN):
    return RNG.normal(size=(rows, WIDTH)).astype("float32")


def projections(layer, x, name):
    weights = {w.path.split("attention/")[-1]: to_numpy(w).astype("float64") for w in layer.weights}
    return x @ weights[f"{name}/kernel"] + weights.get(f"{name}/bias", 0.0)


def delta(layer, distance):
    """The row of the table, from the description."""
    size = abs(distance)
    if isinstance(layer, SharedDisentangledSelfAttention):
        size, middle = min(size, layer.max_position - 1), layer.span // 2
        if size > middle:
            steps = np.log(size / middle) / np.log((layer.max_position - 1) / middle)
            size = middle + int(np.ceil(steps * (middle - 1)))
    return int(np.clip(np.sign(distance) * size + layer.span, 0, 2 * layer.span - 1))


def naive(layer, hidden, memory, relative, positions=None, mask=None):
    """A loop over query and key, from equation 4."""
    q, k, v = (
        projections(layer, x, n) for x, n in ((hidden, "query"), (memory, "key"), (memory, "value"))
    )
    prefix = "" if isinstance(layer, SharedDisentangledSelfAttention) else "position_"
    kr = projections(layer, relative, prefix + "key") if "c2p" in layer.terms else None
    qr = projections(layer, relative, prefix + "query") if "p2c" in layer.terms else None
    size = layer.head_dim
    context = np.zeros(hidden.shape)
    for b, h, i in np.ndindex(len(hidden), layer.num_heads, hidden.shape[1]):
        part = slice(h * size, (h + 1) * size)
        place = i if positions is None else positions[b, i]
        scores = np.full(memory.shape[1], -np.inf)
        for j in range(memory.shape[1]):
            if mask is not None and not mask[b, j]:
                continue
            row, turned = delta(layer, place - j), delta(layer, j - place)
            p2c_row = row if layer.p2c_distance == "query_minus_key" else turned
            scores[j] = q[b, i, part] @ k[b, j, part]
            if "c2p" in layer.terms:
                scores[j] += q[b, i, part] @ kr[row, part]
            if "p2c" in layer.terms:
                scores[j] += k[b, j, part] @ qr[p2c_row, part]
        probabilities = np.exp((scores - scores.max()) / (size * (1 + len(layer.terms))) ** 0.5)
        context[b, i, part] = probabilities / probabilities.sum() @ v[b, :, part]
    return projections(layer, context, "output_projection")


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


# The direction is that of the second term alone.
@LAYOUTS
@pytest.mark.parametrize(
    ("terms", "direction"),
    [
        ((), "query_minus_key"),
        (("c2p",), "query_minus_key"),
        (("p2c",), "query_minus_key"),
        (("p2c",), "key_minus_query"),
        (("c2p", "p2c"), "query_minus_key"),
        (("c2p", "p2c"), "key_minus_query"),
    ],
)
def test_C10_equals_a_naive_loop(shared, terms, direction):
    layer = make(shared, terms=terms, p2c_distance=direction)
    hidden, relative = normal(2, 15, WIDTH), table()
    mask = np.arange(15) < np.array([[15], [6]])
    received = compiled(layer)(hidden, relative_embeddings=relative, attention_mask=mask)
    expected = naive(layer, hidden, hidden, relative, mask=mask)
    np.testing.assert_allclose(to_numpy(received), expected, atol=1e-5)


def test_C10_the_two_directions_would_be_told_apart():
    hidden, relative, layer = normal(1, 5, WIDTH), table(), make(terms=("p2c",))
    twin = make(terms=("p2c",), p2c_distance="key_minus_query", random=False)
    twin.set_weights(layer.get_weights())
    first, second = (
        to_numpy(compiled(x)(hidden, relative_embeddings=relative)) for x in (layer, twin)
    )
    assert np.abs(first - second).max() > 1e-2


@LAYOUTS
def test_the_terms_apart_sum_to_the_scores(shared):
    layer, hidden, relative = make(shared), normal(1, 6, WIDTH), table()

    def calculate(hidden, relative):
        query = layer.split_heads(layer.query(hidden)) * layer.scale
        scores = layer.scores(query, layer.split_heads(layer.key(hidden)), relative)
        return scores, layer.scores_by_term(hidden, relative)

    scores, by_term = compiled(calculate, layer)(hidden, relative)
    assert list(by_term) == ["c2c", "c2p", "p2c"]
    parts = {name: to_numpy(x) for name, x in by_term.items()}
    np.testing.assert_allclose(sum(parts.values()), to_numpy(scores), atol=1e-5)
    query = projections(layer, hidden, "query").reshape(6, 4, 4)
    key = projections(layer, hidden, "key").reshape(6, 4, 4)
    expected = np.einsum("qhd,khd->hqk", query, key) * layer.scale
    np.testing.assert_allclose(parts["c2c"][0], expected, atol=1e-5)


@LAYOUTS
@pytest.mark.parametrize(("queries", "keys"), [(3, 9), (11, 4), (1, 6)])
def test_C11_as_many_queries_as_one_likes(shared, queries, keys):
    layer, relative = make(shared), table()
    hidden, memory = normal(2, queries, WIDTH), normal(2, keys, WIDTH)
    received = compiled(layer)(hidden, memory=memory, relative_embeddings=relative)
    expected = naive(layer, hidden, memory, relative)
    np.testing.assert_allclose(to_numpy(received), expected, atol=1e-5)


@LAYOUTS
def test_C11_queries_at_given_positions(shared):
    layer, relative = make(shared), table()
    hidden, memory = normal(2, 4, WIDTH), normal(2, 13, WIDTH)
    positions = np.array([[12, 0, 3, 3], [0, 0, 7, 5]], "int32")
    received = compiled(layer)(
        hidden, memory=memory, relative_embeddings=relative, query_positions=positions
    )
    expected = naive(layer, hidden, memory, relative, positions)
    np.testing.assert_allclose(to_numpy(received), expected, atol=1e-5)


@LAYOUTS
def test_more_than_512_tokens(shared):
    sizes = {"span": 256, "max_position": 512} if shared else {"span": 512}
    layer = make(shared, **sizes)
    length = 640 if shared else 600  # ten blocks of vectors, and one of all
    hidden, relative = normal(1, length, WIDTH), table(512 if shared else 1024)
    received = to_numpy(compiled(layer)(hidden, relative_embeddings=relative))
    some = np.array([[0, 1, 77, 300, 598, length - 1]])
    rows = hidden[:, some[0]]
    expected = naive(layer, rows, hidden, relative, some)
    np.testing.assert_allclose(received[:, some[0]], expected, atol=1e-5)


@LAYOUTS
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_M1_M3_padding_rows_and_half_precision_are_finite(shared, dtype):
    layer, hidden, relative = make(shared, dtype=dtype), normal(2, 5, WIDTH), table()
    masks = np.array([[1] * 5, [0] * 5]), np.ones((2, 5), "int64")
    call = compiled(layer)
    masked, real = (call(hidden, relative_embeddings=relative, attention_mask=m) for m in masks)
    assert keras.backend.standardize_dtype(masked.dtype) == layer.compute_dtype
    assert np.isfinite(to_numpy(masked)).all()
    tolerance = 1e-6 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(to_numpy(masked)[:1], to_numpy(real)[:1], atol=tolerance)
    assert np.abs(to_numpy(masked)[1] - to_numpy(real)[1]).max() > tolerance


@pytest.mark.parametrize("terms", [("p2p",), ("c2p", "p2p"), ("c2p", "c2p")])
def test_C14_other_terms_are_refused(terms):
    with pytest.raises(ValueError, match="Expected `terms` among"):
        DisentangledSelfAttention(4, terms=terms)
    with pytest.raises(ValueError, match="Expected `p2c_distance` among"):
        DisentangledSelfAttention(4, p2c_distance="both")


def test_C12_relative_embeddings_cannot_be_left_out():
    with pytest.raises((TypeError, ValueError), match="relative_embeddings"):
        make()(normal(1, 3, WIDTH))


@LAYOUTS
def test_the_configuration_keeps_every_argument(shared):
    layer = make(shared, terms=("p2c",), p2c_distance="key_minus_query", position_dropout=0.3)
    twin = type(layer).from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    assert (twin.terms, twin.position_dropout.rate, twin.span) == (("p2c",), 0.3, SPAN)


@LAYOUTS
def test_every_weight_learns_and_lengths_may_be_unknown(shared):
    layer = make(shared, dropout=0.0, position_dropout=0.0)
    inputs = keras.Input((None, WIDTH))
    relative = table()
    model = keras.Model(inputs, layer(inputs, relative_embeddings=relative))
    for length in (4, 9):
        hidden = normal(2, length, WIDTH)
        expected = naive(layer, hidden, hidden, relative)
        received = call_with_unknown_sizes(model, hidden)
        np.testing.assert_allclose(to_numpy(received), expected, atol=1e-5)
    assert_training_moves(layer, lambda: square_error(layer(hidden, relative_embeddings=relative)))


@LAYOUTS
def test_dropout_of_positions_acts_in_training_only(shared):
    layer = make(shared, dropout=0.0, position_dropout=0.5)
    hidden, relative = normal(1, 4, WIDTH), table()
    still, trained = (
        to_numpy(layer(hidden, relative_embeddings=relative, training=training))
        for training in (None, True)
    )
    assert np.abs(still - trained).max() > 1e-3


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads what XLA compiles on JAX")
@LAYOUTS
@pytest.mark.parametrize("given", [False, True], ids=["all", "given_positions"])
def test_X1_no_gather_over_pairs_of_positions(shared, given):
    import jax

    length, asked = 24, 24 if not given else 11
    layer = make(shared, dropout=0.0, position_dropout=0.0)
    positions = np.arange(asked)[None].repeat(8, 0) if given else None

    def loss(weights, hidden, relative):
        outputs, _ = layer.stateless_call(
            weights,
            [],
            hidden[:, :asked],
            memory=hidden,
            relative_embeddings=relative,
            query_positions=positions,
        )
        return (outputs**2).sum()

    weights = [weight.value for weight in layer.trainable_variables]
    step = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    lowered = step.lower(weights, ops.ones((8, length, WIDTH)), ops.ones((2 * SPAN, WIDTH)))
    assert "dot_general" in lowered.as_text()
    for text in (lowered.as_text(), lowered.compile().as_text()):
        for line in re.findall(r".*(?:gather|scatter|dynamic.slice).*", text):
            sizes = re.findall(r"(?:f32\[|tensor<)([0-9,x]+)", line)
            for size in sizes:
                count = np.prod([int(n) for n in re.findall(r"\d+", size)])
                assert count < 8 * 4 * asked * length / 3, line
