import functools

import keras
import numpy as np
import pytest

from keras_bert3 import DebertaBackbone, DebertaV2Backbone
from keras_bert3.backbones import sizes
from keras_bert3.layers.masked_lm_head import MaskedLMHead
from tests.layer_checks import call_with_unknown_sizes, to_numpy

RNG = np.random.default_rng(2)
TINY = {
    "vocabulary_size": 30,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_sequence_length": 10,
    "dropout": 0.0,
}
KINDS = {
    "v1": (DebertaBackbone, {}),
    "v2": (DebertaV2Backbone, {"span": 4, "convolution_size": 3}),  # v3: the same without it
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def make(kind, **arguments):
    cls, sizes_of_kind = KINDS[kind]
    backbone = cls(**{**TINY, **sizes_of_kind, **arguments})
    for weight in backbone.weights:
        weight.assign(RNG.normal(0, 0.4, weight.shape))
    return backbone


@functools.cache
def one_of(kind):
    """A model for the tests that change nothing in it."""
    return make(kind)


def batch(length=7, real=(7, 4)):
    mask = (np.arange(length) < np.array(real)[:, None]).astype("int32")
    ids = RNG.integers(5, 30, mask.shape).astype("int32") * mask
    return {"token_ids": ids, "padding_mask": mask}


def count(*layers):
    return sum(int(np.prod(weight.shape)) for layer in layers for weight in layer.weights)


@pytest.mark.parametrize("name", sizes.DEBERTA_PARAMETERS)
def test_C15_every_published_size_has_its_published_number_of_parameters(name):
    cls = DebertaBackbone if name in sizes.DEBERTA else DebertaV2Backbone
    arguments = {**sizes.DEBERTA, **sizes.DEBERTA_V2}[name]
    with keras.StatelessScope(initialize_variables=False):
        backbone = cls(**arguments)
        decoder = backbone.mask_decoder()
        head = MaskedLMHead(backbone.vocabulary_size, backbone.hidden_dim)
        head.build((None, None, backbone.hidden_dim))
    token_table = int(np.prod(backbone.token_embeddings.shape))
    counts = (count(backbone), count(backbone, head), count(backbone, head, decoder), token_table)
    keras.backend.clear_session(free_memory=False)
    assert counts == sizes.DEBERTA_PARAMETERS[name]


@EVERY_KIND
def test_the_configuration_keeps_every_argument(kind):
    backbone = make(kind, terms=("c2p",), p2c_distance="key_minus_query", attention_dropout=0.2)
    twin = type(backbone).from_config(backbone.get_config())
    assert twin.get_config() == backbone.get_config()
    assert [w.path for w in twin.weights] == [w.path for w in backbone.weights]
    assert twin.blocks[0].attention.terms == ("c2p",)


@EVERY_KIND
def test_M5_M7_padding_is_invisible(kind):
    backbone, inputs = one_of(kind), batch()
    changed = dict(inputs, token_ids=np.where(inputs["padding_mask"], inputs["token_ids"], 9))
    short = {name: value[1:, :4] for name, value in inputs.items()}
    first, second, alone = (
        to_numpy(backbone(x)["sequence_output"]) for x in (inputs, changed, short)
    )
    real = inputs["padding_mask"] == 1
    np.testing.assert_allclose(first[real], second[real], atol=1e-5)
    np.testing.assert_allclose(first[1:, :4], alone, atol=1e-5)


def test_segments_are_ignored_without_a_table_and_read_with_one():
    one, two = ({**batch(), "segment_ids": np.full((2, 7), i)} for i in (0, 1))
    two["token_ids"] = one["token_ids"]
    for segments, largest in ((0, 0.0), (2, 1e-3)):
        backbone = make("v1", num_layers=1, num_segments=segments, terms=())
        assert not backbone.relative_embeddings.trainable_weights
        outputs = [to_numpy(backbone(x)["sequence_output"]) for x in (one, two)]
        assert (np.abs(outputs[0] - outputs[1]).max() > largest) == bool(segments)


@EVERY_KIND
def test_longer_than_the_position_table(kind):
    backbone = one_of(kind)
    output = to_numpy(backbone(batch(23, (23, 11)))["sequence_output"])
    assert output.shape == (2, 23, 8) and np.isfinite(output).all()
    with pytest.raises(ValueError, match="at most 10 tokens.*Received: sequence length 23"):
        backbone.masked_lm_features(backbone.mask_decoder(), batch(23, (23, 11)))


@EVERY_KIND
def test_outputs_are_declared_and_lengths_may_be_unknown(kind):
    backbone = one_of(kind)
    symbolic = {
        n: keras.Input((None,), dtype="int32", name=n) for n in ("token_ids", "padding_mask")
    }
    outputs = backbone(symbolic, layer_outputs=True)
    assert outputs["sequence_output"].shape == (None, None, 8)
    assert len(outputs["layer_outputs"]) == 3
    model, inputs = keras.Model(symbolic, outputs["sequence_output"]), batch()
    expected = to_numpy(backbone(inputs)["sequence_output"])
    received = to_numpy(call_with_unknown_sizes(model, inputs))
    np.testing.assert_allclose(received, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
@EVERY_KIND
def test_M3_half_precision(kind, dtype):
    backbone = KINDS[kind][0](**{**TINY, **KINDS[kind][1], "num_layers": 1}, dtype=dtype)
    ids = np.array([[1, 7, 8, 2]])
    output = backbone({"token_ids": ids, "padding_mask": np.ones_like(ids)})["sequence_output"]
    assert keras.backend.standardize_dtype(output.dtype) == dtype.removeprefix("mixed_")
    assert np.isfinite(to_numpy(output)).all()


@pytest.mark.eager
def test_what_is_no_batch_is_refused():
    backbone, inputs = one_of("v1"), batch()
    with pytest.raises(ValueError, match=r"Received: \['token_ids'\]"):
        backbone({"token_ids": inputs["token_ids"]})
    with pytest.raises(ValueError, match=r"Received: shape=\(7,\)"):
        backbone({"token_ids": inputs["token_ids"][0], "padding_mask": inputs["padding_mask"]})
    with pytest.raises(ValueError, match=r"range \[0, 30\). Received: 30"):
        backbone({**inputs, "token_ids": inputs["token_ids"] * 0 + 30})


def test_the_mask_decoder_needs_two_blocks():
    with pytest.raises(ValueError, match="num_layers=1"):
        make("v1", num_layers=1).mask_decoder()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX always compiles, by shape")
@EVERY_KIND
def test_X1_compiles_by_XLA_at_unknown_lengths(kind):
    backbone = make(kind, num_layers=1)
    inputs = {n: keras.Input((None,), dtype="int32", name=n) for n in ("token_ids", "padding_mask")}
    outputs = keras.layers.Dense(2)(backbone(inputs)["sequence_output"][:, 0])
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse", jit_compile=True)
    for length in (7, 9):
        x = batch(length)
        loss = model.train_on_batch(x, np.ones((2, 2)))
        assert np.isfinite(loss)
        expected = to_numpy(backbone(x)["sequence_output"])[:, 0] @ to_numpy(model.weights[-2])
        expected += to_numpy(model.weights[-1])
        np.testing.assert_allclose(to_numpy(model.predict_on_batch(x)), expected, atol=1e-4)


def has_gpu():
    if keras.backend.backend() != "torch":
        return False
    import torch

    return torch.cuda.is_available()


@pytest.mark.skipif(not has_gpu(), reason="needs PyTorch and a GPU")
@EVERY_KIND
def test_M9_a_gpu_equals_the_cpu_with_relative_scores_and_padding(kind):
    import torch

    backbone, x = make(kind), batch()
    on_gpu = to_numpy(backbone(x)["sequence_output"])
    with keras.device("cpu"):
        twin = type(backbone).from_config(backbone.get_config())
        twin.set_weights(backbone.get_weights())
        tensors = {name: torch.tensor(value) for name, value in x.items()}
        on_cpu = to_numpy(twin(tensors)["sequence_output"])
    real = x["padding_mask"] == 1
    np.testing.assert_allclose(on_gpu[real], on_cpu[real], atol=1e-3)
