import keras
import numpy as np
import pytest

from keras_bert3 import BertBackbone, CausalLM, CausalLMPreprocessor, GPTBackbone
from keras_bert3.checkpoints import preset
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from keras_bert3.training.optimizers import GPTAdam
from tests.layer_checks import to_numpy

TEXTS = ["the cat sat on the mat", "the dog sat on the log and slept", "a cat slept"] * 4
TOKENIZER = train_byte_pair(TEXTS, 30, "bert")
SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}


def make(preprocessor=True, **overrides):
    overrides = {"vocabulary_size": TOKENIZER.vocabulary_size, **SIZE, **overrides}
    made = CausalLMPreprocessor(TOKENIZER, 12) if preprocessor else None
    return CausalLM(GPTBackbone(max_sequence_length=24, **overrides), made)


def test_logits_are_products_with_the_token_table():
    task = make()
    inputs = task.preprocess(TEXTS[:2])
    hidden = to_numpy(task.backbone(inputs)["sequence_output"])
    table = to_numpy(task.backbone.token_embeddings.value)
    np.testing.assert_allclose(to_numpy(task(inputs)), hidden @ table.T, atol=1e-5)
    assert not task.heads and len(task.weights) == len(task.backbone.weights)


def test_the_dropped_matrix_is_the_output_matrix_too():
    task = make(dropout=0.5, attention_dropout=0.0)
    logits = to_numpy(task(task.preprocess(TEXTS[:1]), training=True))
    tables = to_numpy(task.backbone.token_embeddings.value)
    outputs = task.backbone(task.preprocess(TEXTS[:1]), token_table=True, training=True)
    assert (to_numpy(outputs["token_table"]) == 0).mean() > 0.3 and logits.shape[-1] == len(tables)


def test_labels_are_the_tokens_that_follow_and_padding_weighs_nothing():
    task = make()
    x, y, weights = task.prepare(TEXTS[:3], None, [1.0, 2.0, 0.5], None, None)
    for row, (text, weight) in enumerate(zip(TEXTS, (1.0, 2.0, 0.5), strict=False)):
        ids = TOKENIZER(text)[:12]
        assert x["token_ids"][row, : len(ids)].tolist() == ids
        assert x["padding_mask"][row].sum() == len(ids)
        assert y[row, : len(ids) - 1].tolist() == ids[1:]
        assert weights[row].tolist() == [weight] * (len(ids) - 1) + [0] * (13 - len(ids))
    with pytest.raises(ValueError, match="their own labels"):
        task.prepare(TEXTS[:3], [0, 1, 0], None, None, None)
    with pytest.raises(ValueError, match="one text a row. Received: pairs"):
        task.preprocess((TEXTS, TEXTS))


def test_the_loss_weighs_every_token_alike():
    task = make(dropout=0.0)
    task.compile()
    assert isinstance(task.optimizer, GPTAdam)
    x, y, weights = task.prepare(TEXTS[:3], None, None, None, None)
    logits = to_numpy(task(x)).astype("float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logs, y[..., None], -1)[..., 0]
    expected = (nll * weights).sum() / weights.sum()
    scores = task.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], expected, rtol=1e-4)
    np.testing.assert_allclose(scores["perplexity"], np.exp(expected), rtol=1e-4)


@pytest.mark.graph
def test_fit_on_strings_learns_them_and_generate_writes_them():
    keras.utils.set_random_seed(1)
    task = make(dropout=0.0)
    task.compile(optimizer=GPTAdam(0.02, matrix_decay=0.0))
    task.fit(["the dog sat on the log and slept"] * 8, epochs=60, verbose=0)
    assert task.generate("the dog", 9).startswith("the dog sat on the log")
    before = task.generate(["the dog", "the"], 7)
    task.backbone.token_embeddings.assign(task.backbone.token_embeddings.value * -1.0)
    assert task.generate(["the dog", "the"], 7) != before  # weights are read anew


def test_presets_keep_tokenizer_and_weights(tmp_path):
    task = make()
    task.save_to_preset(tmp_path / "preset")
    again, report = preset.read_task(tmp_path / "preset", CausalLM)
    assert not report.newly_initialised
    assert again.preprocessor.sequence_length == 12
    assert again.preprocessor.tokenizer.get_config() == TOKENIZER.get_config()
    x = task.preprocess(TEXTS[:2])
    np.testing.assert_array_equal(to_numpy(again(x)), to_numpy(task(x)))


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_finite(dtype):
    task = make(dtype=dtype)
    logits = task(task.preprocess(TEXTS[:2]))
    assert keras.backend.standardize_dtype(logits.dtype) == dtype.removeprefix("mixed_")
    assert np.isfinite(to_numpy(logits)).all()


def test_a_backbone_that_looks_both_ways_is_refused():
    with pytest.raises(ValueError, match="to the left only.*Received: BertBackbone"):
        CausalLM(BertBackbone(30, **SIZE))
