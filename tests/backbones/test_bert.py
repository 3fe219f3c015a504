import keras
import numpy as np
import pytest

from keras_bert3.backbones.bert import BertBackbone
from tests.layer_checks import to_numpy

SMALL = {
    "vocabulary_size": 50,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 12,
}
RNG = np.random.default_rng(0)
IDS = RNG.integers(1, 50, (2, 6)).astype("int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1]] * 2, "int32")
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
INPUTS = {"token_ids": IDS, "segment_ids": SEGMENTS, "padding_mask": MASK}


def make(**arguments):
    return BertBackbone(**{**SMALL, **arguments})


def sequence(backbone, **inputs):
    return to_numpy(backbone({**INPUTS, **inputs})["sequence_output"])


def symbolic(batch=None, length=None):
    return {
        name: keras.Input((length,), batch_size=batch, dtype="int32", name=name) for name in INPUTS
    }


def test_layer_outputs_run_from_the_embeddings_to_the_last_block():
    backbone = make()
    outputs = backbone(INPUTS, layer_outputs=True)
    layers = outputs["layer_outputs"]
    assert len(layers) == 3
    first = to_numpy(backbone.embeddings(IDS, SEGMENTS))
    np.testing.assert_allclose(to_numpy(layers[0]), first, atol=1e-6)
    np.testing.assert_array_equal(to_numpy(layers[-1]), to_numpy(outputs["sequence_output"]))
    pooled = to_numpy(backbone.pooler(layers[-1]))
    np.testing.assert_allclose(pooled, to_numpy(outputs["pooled_output"]), atol=1e-6)


def test_symbolic_calls_with_unknown_lengths():
    backbone = make()
    inputs = symbolic()
    model = keras.Model(inputs, backbone(inputs, layer_outputs=True))
    assert model.output["sequence_output"].shape == (None, None, 16)
    assert model.output["pooled_output"].shape == (None, 16)
    expected = backbone(INPUTS)
    for length in (6, 4):
        feed = {name: value[:, :length] for name, value in INPUTS.items()}
        got = model.predict(feed, verbose=0)["sequence_output"]
        want = to_numpy(backbone(feed)["sequence_output"])
        np.testing.assert_allclose(got, want, atol=1e-5)
    assert expected["sequence_output"].shape == (2, 6, 16)


def test_serialisation():
    backbone = make(activation="gelu_erf", dropout=0.2, attention_dropout=0.3)
    twin = BertBackbone.from_config(backbone.get_config())
    assert twin.get_config() == backbone.get_config()
    twin.set_weights(backbone.get_weights())
    np.testing.assert_allclose(sequence(twin), sequence(backbone), atol=1e-6)


def test_blocks_start_with_different_weights_from_the_truncated_normal():
    backbone = make(hidden_dim=64, intermediate_dim=256)
    kernels = [to_numpy(w) for w in backbone.weights if w.name == "kernel"]
    assert len({kernel.ravel()[0] for kernel in kernels}) == len(kernels)
    for kernel in kernels:
        assert abs(kernel.std() - 0.0176) < 1e-3
    assert all((to_numpy(w) == 0).all() for w in backbone.weights if w.name in ("bias", "beta"))
    assert all((to_numpy(w) == 1).all() for w in backbone.weights if w.name == "gamma")


def test_segments_are_zero_when_absent():
    backbone = make()
    without = {"token_ids": IDS, "padding_mask": MASK}
    zeros = sequence(backbone, segment_ids=np.zeros_like(IDS))
    np.testing.assert_array_equal(to_numpy(backbone(without)["sequence_output"]), zeros)
    assert not np.allclose(zeros, sequence(backbone))


@pytest.mark.parametrize(
    "dtype", ["float32", "mixed_bfloat16", "mixed_float16", "bfloat16", "float16"]
)
def test_M1_a_fully_masked_row_is_finite_and_does_not_touch_the_others(dtype):
    backbone = make(dtype=dtype)
    both = sequence(backbone, padding_mask=np.array([[1] * 6, [0] * 6]))
    assert np.isfinite(both).all()
    alone = {name: value[:1] for name, value in INPUTS.items()}
    tolerance = 1e-5 if dtype == "float32" else 5e-2
    want = to_numpy(backbone(alone)["sequence_output"])
    np.testing.assert_allclose(both[:1], want, atol=tolerance)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_M2_the_dtype_of_the_mask_does_not_matter(dtype):
    backbone = make()
    same = sequence(backbone, padding_mask=MASK.astype(dtype))
    np.testing.assert_allclose(same, sequence(backbone), atol=1e-6)


def test_M4_masks_of_rank_two_three_and_four():
    backbone = make()
    rows = np.broadcast_to(MASK[:, None, :], (2, 6, 6))
    for mask in (rows, rows[:, None]):
        got = sequence(backbone, padding_mask=mask)
        np.testing.assert_allclose(got, sequence(backbone), atol=1e-6)


def test_M5_padding_changes_nothing_and_a_mask_is_asked_for():
    backbone = make()
    short = {name: value[1:, :4] for name, value in INPUTS.items()}
    want = to_numpy(backbone(short)["sequence_output"])
    np.testing.assert_allclose(sequence(backbone)[1:, :4], want, atol=1e-5)
    with pytest.raises(ValueError, match=r"'padding_mask'.*Received: \['token_ids'\]"):
        backbone({"token_ids": IDS})
    with pytest.raises(ValueError, match="`padding_mask` to have a value a token.*shape .2, 4."):
        backbone({**INPUTS, "padding_mask": MASK[:, :4]})


def test_M7_ids_under_padding_do_not_leak():
    backbone = make()
    changed = IDS.copy()
    changed[1, 4:] = 33
    got = sequence(backbone, token_ids=changed)
    np.testing.assert_allclose(got[1, :4], sequence(backbone)[1, :4], atol=1e-6)


def test_M8_positional_segments_are_refused():
    with pytest.raises(ValueError, match="Expected `inputs` to be a dict"):
        make()(IDS, SEGMENTS)


def test_S1_too_long_sequences_are_refused_with_both_numbers():
    long = np.ones((1, 13), "int32")
    with pytest.raises(ValueError, match="at most 12 tokens.*sequence length 13"):
        make()({"token_ids": long, "padding_mask": long})


@pytest.mark.eager
@pytest.mark.parametrize("bad", [50, -1])
def test_ids_outside_the_vocabulary_are_refused(bad):
    ids = IDS.copy()
    ids[1, 2] = bad
    with pytest.raises(ValueError, match=rf"range \[0, 50\). Received: {bad} at position \(1, 2\)"):
        make()({**INPUTS, "token_ids": ids})


@pytest.mark.eager
def test_segment_ids_outside_the_table_are_refused():
    with pytest.raises(ValueError, match=r"`segment_ids` in the range \[0, 2\). Received: 2"):
        make()({**INPUTS, "segment_ids": SEGMENTS + 1})


def test_dropout_is_on_in_training_only():
    backbone = make(dropout=0.5)
    np.testing.assert_array_equal(sequence(backbone), sequence(backbone))
    noisy = to_numpy(backbone(INPUTS, training=True)["sequence_output"])
    assert not np.allclose(noisy, sequence(backbone))
