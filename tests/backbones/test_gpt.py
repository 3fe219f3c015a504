import keras
import numpy as np
import pytest

from keras_bert3 import GPTBackbone
from keras_bert3.backbones import sizes
from keras_bert3.checkpoints.variables import variables_by_path
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(11)
SIZES = {
    "vocabulary_size": 29,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_sequence_length": 10,
}


def make(**overrides):
    backbone = GPTBackbone(**{**SIZES, **overrides})
    for weight in backbone.weights:
        if "seed" not in weight.path:
            weight.assign(RNG.normal(0, 0.5, weight.shape))
    return backbone


def batch(rows, length, left=False):
    """Rows of ids with padding on one side, and the mask that tells it."""
    ids, mask = np.zeros((len(rows), length), "int32"), np.zeros((len(rows), length), "int32")
    for i, row in enumerate(rows):
        place = slice(length - len(row), None) if left else slice(len(row))
        ids[i, place], mask[i, place] = row, 1
    return {"token_ids": ids, "padding_mask": mask}


def naive(backbone, ids):
    """One unpadded row through equation 2 of the paper, position by position, in float64."""
    w = {p: to_numpy(v.value).astype("float64") for p, v in variables_by_path(backbone).items()}

    def dense(x, name):
        return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return centred / scale * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    h = w["embeddings/token/embeddings"][ids] + w["embeddings/position/embeddings"][: len(ids)]
    for i in range(backbone.num_layers):
        block, size = f"block_{i}", backbone.hidden_dim // backbone.num_heads
        q, k, v = (dense(h, f"{block}/attention/{n}") for n in ("query", "key", "value"))
        context = np.zeros_like(h)
        for head in range(backbone.num_heads):
            part = slice(head * size, (head + 1) * size)
            for t in range(len(ids)):
                scores = np.exp(k[: t + 1, part] @ q[t, part] / np.sqrt(size))
                context[t, part] = scores / scores.sum() @ v[: t + 1, part]
        n = norm(
            h + dense(context, f"{block}/attention/output_projection"), f"{block}/attention_norm"
        )
        wide = gelu(dense(n, f"{block}/feed_forward/intermediate"))
        h = norm(n + dense(wide, f"{block}/feed_forward/output_projection"), f"{block}/output_norm")
    return h


def test_equals_a_naive_loop():
    backbone, row = make(), [3, 1, 4, 1, 5, 9, 2]
    output = to_numpy(backbone(batch([row], len(row)))["sequence_output"])[0]
    np.testing.assert_allclose(output, naive(backbone, row), atol=1e-5)


def test_GP2_padding_is_told_by_the_mask_and_may_stand_anywhere():
    backbone, rows = make(), [[0, 4, 0, 7], [5, 6, 7, 0, 2, 1], [0, 3]]
    sides = {
        left: to_numpy(backbone(batch(rows, 9, left))["sequence_output"]) for left in (True, False)
    }
    for i, row in enumerate(rows):
        alone = to_numpy(backbone(batch([row], len(row)))["sequence_output"])[0]
        np.testing.assert_allclose(sides[False][i, : len(row)], alone, atol=1e-5)
        np.testing.assert_allclose(sides[True][i, -len(row) :], alone, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_causal_and_padding_masks_together_are_finite_in_half_precision(dtype):
    backbone = make(dtype=dtype)
    for left in (True, False):
        output = backbone(batch([[1, 2], [3, 4, 5, 6, 7]], 9, left))["sequence_output"]
        assert np.isfinite(to_numpy(output)).all()


def test_the_future_does_not_reach_the_past():
    backbone = make()
    first = to_numpy(backbone(batch([[1, 2, 3, 4, 5]], 5))["sequence_output"])
    second = to_numpy(backbone(batch([[1, 2, 3, 8, 9]], 5))["sequence_output"])
    np.testing.assert_array_equal(first[:, :3], second[:, :3])
    assert not np.allclose(first[:, 3:], second[:, 3:])


def test_dropout_on_the_matrix_is_one_draw_for_a_step_and_reaches_the_output_matrix():
    backbone = make(dropout=0.5, vocabulary_size=200, hidden_dim=16)
    inputs = batch([[3] * 8, [3] * 8], 8)
    outputs = backbone(inputs, layer_outputs=True, token_table=True, training=True)
    table, hidden = to_numpy(outputs["token_table"]), to_numpy(outputs["layer_outputs"][0])
    np.testing.assert_allclose(hidden[0], hidden[1])  # the same word at the same place
    steps = hidden[0] - table[3]  # what is left are the dropped position rows
    original = to_numpy(backbone.token_embeddings.value)
    assert 0.4 < np.mean(table == 0) < 0.6
    np.testing.assert_allclose(table[table != 0], 2 * original[table != 0], rtol=1e-5)
    positions = to_numpy(backbone.embeddings.position.embeddings.value)[:8]
    kept = np.abs(steps) > 1e-4
    np.testing.assert_allclose(steps[kept], 2 * positions[kept], atol=1e-4)


def test_dropout_on_the_sum_leaves_the_tables_alone():
    backbone = make(dropout=0.5, embedding_dropout="sum", hidden_dim=64)
    inputs = batch([[3] * 8, [3] * 8], 8)
    outputs = backbone(inputs, layer_outputs=True, token_table=True, training=True)
    np.testing.assert_array_equal(
        to_numpy(outputs["token_table"]), to_numpy(backbone.token_embeddings.value)
    )
    hidden = to_numpy(outputs["layer_outputs"][0])
    assert 0.4 < np.mean(hidden == 0) < 0.6 and not np.allclose(hidden[0], hidden[1])
    with pytest.raises(ValueError, match="one of matrix, sum. Received: 'word'"):
        make(embedding_dropout="word")


def test_starts_from_a_normal_distribution_that_is_not_truncated():
    backbone = GPTBackbone(**{**SIZES, "vocabulary_size": 5000, "hidden_dim": 32})
    for weight in (backbone.token_embeddings, backbone.blocks[0].attention.query.kernel):
        assert abs(to_numpy(weight.value).std() - 0.02) < 0.001
    assert np.abs(to_numpy(backbone.token_embeddings.value)).max() > 0.05  # 2 sigma is 0.04
    assert not np.allclose(*(to_numpy(b.attention.query.kernel.value) for b in backbone.blocks))


def test_R4_the_configuration_keeps_every_argument():
    backbone = make(
        dropout=0.2,
        attention_dropout=0.3,
        embedding_dropout="sum",
        layer_norm_epsilon=1e-4,
        initializer_range=0.1,
        activation="gelu_erf",
    )
    twin = GPTBackbone.from_config(backbone.get_config())
    assert twin.get_config() == backbone.get_config()
    twin.set_weights(backbone.get_weights())
    inputs = batch([[1, 2, 3]], 4)
    np.testing.assert_array_equal(
        *(to_numpy(b(inputs)["sequence_output"]) for b in (backbone, twin))
    )


def test_symbolic_calls_know_their_shapes():
    inputs = {n: keras.Input((None,), dtype="int32", name=n) for n in ("token_ids", "padding_mask")}
    backbone = make()
    outputs = backbone(inputs, layer_outputs=True, token_table=True)
    assert outputs["sequence_output"].shape == (None, None, 8)
    assert (len(outputs["layer_outputs"]), outputs["token_table"].shape) == (3, (29, 8))
    feed = batch([[1, 2, 3]], 4)
    model = keras.Model(inputs, backbone(inputs)["sequence_output"])
    expected = to_numpy(backbone(feed)["sequence_output"])
    np.testing.assert_allclose(model.predict(feed, verbose=0), expected, atol=1e-5)


@pytest.mark.eager
def test_wrong_inputs_are_named():
    backbone = make()
    good = batch([[1, 2]], 3)
    with pytest.raises(ValueError, match=r"token_ids` in the range \[0, 29\). Received: 29"):
        backbone({**good, "token_ids": good["token_ids"] + 27})
    with pytest.raises(ValueError, match=r"segment_ids` in the range \[0, 1\). Received: 1"):
        backbone({**good, "segment_ids": good["padding_mask"]})
    with pytest.raises(ValueError, match=r"padding_mask` of shape \(batch, length\).*\(1, 3, 3\)"):
        backbone({**good, "padding_mask": np.ones((1, 3, 3))})
    with pytest.raises(ValueError, match="at most 10 tokens.*sequence length 11"):
        backbone(batch([[1]], 11))


def test_the_published_size_has_the_published_count():
    with keras.StatelessScope(initialize_variables=False):  # weights are counted, not drawn
        backbone = GPTBackbone(**sizes.GPT["base"])
        counted = sum(int(np.prod(v.shape)) for v in variables_by_path(backbone).values())
    keras.backend.clear_session(free_memory=False)
    assert counted == sizes.GPT_PARAMETERS["base"] == 116_534_784
