import keras
import numpy as np
import pytest

from keras_bert3.backbones.bilstm import BiLSTMBackbone
from keras_bert3.backbones.deberta import DebertaBackbone
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from tests.layer_checks import to_numpy
from tests.numpy_bert import pretraining_loss
from tests.tasks import toy


def cross_entropy(logits, labels):
    logits = logits.astype("float64")
    log_sum = np.log(np.exp(logits).sum(-1))
    return log_sum - np.take_along_axis(logits, labels[..., None], -1)[..., 0]


def make(**arguments):
    return MaskedLM(toy.backbone(**arguments))


def test_scores_the_gathered_positions_only():
    task = make()
    x, _, _ = toy.batch()
    outputs = task(x)
    size = task.backbone.vocabulary_size
    assert outputs["masked_lm"].shape == (4, 3, size)
    assert outputs["next_sentence"].shape == (4, 2)
    everywhere = to_numpy(task({k: v for k, v in x.items() if k != "mask_positions"})["masked_lm"])
    assert everywhere.shape == (4, 12, size)
    picked = np.take_along_axis(everywhere, x["mask_positions"][..., None], 1)
    np.testing.assert_allclose(to_numpy(outputs["masked_lm"]), picked, atol=1e-5)


def test_L7_the_loss_is_divided_by_the_predictions_of_the_whole_batch():
    task = make(dropout=0.0)
    task.compile()
    x, y, w = toy.batch()
    logits = {name: to_numpy(value) for name, value in task(x).items()}
    losses = cross_entropy(logits["masked_lm"], y["masked_lm"]) * w["masked_lm"]
    expected = losses.sum() / w["masked_lm"].sum()
    expected += cross_entropy(logits["next_sentence"], y["next_sentence"]).mean()
    scores = task.evaluate(x, y, sample_weight=w, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], expected, rtol=1e-5)


def test_L7_uniform_logits_over_five_give_ln_5():
    loss = make().default_compile()["loss"]["masked_lm"]
    value = loss(np.zeros((1, 4), "int32"), np.zeros((1, 4, 5)), np.array([[1.0, 1, 0, 0]]))
    np.testing.assert_allclose(float(value), np.log(5), rtol=1e-6)


def test_L6_nothing_to_predict_gives_zero_and_not_nan():
    loss = make().default_compile()["loss"]["masked_lm"]
    value = loss(np.zeros((2, 4), "int32"), np.ones((2, 4, 5)), np.zeros((2, 4)))
    assert float(value) == 0.0


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_P3_half_precision_trains_with_a_float32_loss(dtype):
    task = make(dtype=dtype)
    task.compile()
    x, y, w = toy.batch()
    assert keras.backend.standardize_dtype(task(x)["masked_lm"].dtype) == dtype[len("mixed_") :]
    history = task.fit(x, y, sample_weight=w, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    loss = task.default_compile()["loss"]["masked_lm"]
    value = loss(y["masked_lm"], task(x)["masked_lm"], w["masked_lm"])
    assert keras.backend.standardize_dtype(value.dtype) == "float32"


def test_training_lowers_the_loss():
    task = make(dropout=0.0)
    task.compile(keras.optimizers.Adam(1e-2))
    x, y, w = toy.batch()
    losses = task.fit(x, y, sample_weight=w, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0] - 1.0


def test_the_same_seed_gives_the_same_losses():
    def losses():
        keras.utils.set_random_seed(5)
        task = make(dropout=0.2)
        task.compile()
        x, y, w = toy.batch(rows=8)
        options = {"sample_weight": w, "epochs": 2, "batch_size": 4, "verbose": 0}
        return task.fit(x, y, **options).history["loss"]

    assert losses() == losses()


def test_the_first_loss_is_that_of_the_formulas_on_every_backend():
    task = make(dropout=0.0)
    rng = np.random.default_rng(11)
    named = variables_by_path(task.backbone, task.heads)
    weights = {path: rng.normal(size=named[path].shape) * 0.3 for path in sorted(named)}
    for path, value in weights.items():
        named[path].assign(value)
    task.compile()
    batch = toy.batch()
    batch[0]["padding_mask"][1, 9:] = False
    x, y, w = batch
    scores = task.evaluate(x, y, sample_weight=w, verbose=0, return_dict=True)
    expected = pretraining_loss(weights, batch, task.backbone.num_layers, task.backbone.num_heads)
    assert abs(scores["loss"] - expected) < 1e-4


@pytest.mark.graph
def test_texts_are_masked_and_learned_from():
    task = toy.masked_lm()
    before = task.evaluate(toy.TEXTS, verbose=0, return_dict=True)
    task.compile(keras.optimizers.Adam(1e-2))
    task.fit(toy.TEXTS, epochs=8, batch_size=4, verbose=0)
    after = task.evaluate(toy.TEXTS, verbose=0, return_dict=True)
    assert after["loss"] < before["loss"] - 0.5


def test_M6_masked_texts_keep_their_padding_mask():
    task = toy.masked_lm()
    x, y, w = task.prepare(toy.TEXTS[:2], None, None, np.arange(2), None)
    assert set(x) == {"token_ids", "segment_ids", "padding_mask", "mask_positions"}
    assert x["padding_mask"].sum(1).tolist() == [8, 9]
    assert ((x["token_ids"] == 4).sum() <= w["masked_lm"].sum()).all()
    assert y["masked_lm"].shape == w["masked_lm"].shape


def test_masks_change_with_the_epoch_and_repeat_with_it():
    task = toy.masked_lm()
    first, again, second = (
        task.prepare(toy.TEXTS, None, None, np.arange(12), epoch)[0]["token_ids"]
        for epoch in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_fill_mask_ranks_tokens_by_probability():
    task = toy.masked_lm()
    suggestions = task.fill_mask("the [MASK] sat on the [MASK]", top_k=3)
    assert [len(mask) for mask in suggestions] == [3, 3]
    inputs = task.preprocessor.pack([[5, 4, 8, 10, 5, 4]])
    logits = to_numpy(task(inputs)["masked_lm"])[0, 2].astype("float64")
    probabilities = np.exp(logits) / np.exp(logits).sum()
    best = np.argsort(-probabilities)[:3]
    vocabulary = task.preprocessor.tokenizer.vocabulary
    assert [token for token, _ in suggestions[0]] == [vocabulary[i] for i in best]
    np.testing.assert_allclose([p for _, p in suggestions[0]], probabilities[best], rtol=1e-4)
    many = task.fill_mask(["the [MASK] sat on the [MASK]", "a [MASK]"], top_k=3)
    assert [len(row) for row in many] == [2, 1]
    assert task.fill_mask([]) == []


def test_fill_mask_without_a_mask_is_refused():
    with pytest.raises(ValueError, match=r"at least one \[MASK\].*Received: 'the cat'"):
        toy.masked_lm().fill_mask("the cat")
    with pytest.raises(ValueError, match="`top_k` of at least 1. Received: -1"):
        toy.masked_lm().fill_mask("the [MASK]", top_k=-1)


def test_positions_beyond_the_sequence_are_refused():
    x, _, _ = toy.batch(length=12)
    x["mask_positions"][1, 0] = 12
    with pytest.raises(ValueError, match=r"`mask_positions` in the range \[0, 12\). Received: 12"):
        make().predict(x, verbose=0)


def test_next_sentence_needs_labels_for_pairs():
    task = toy.masked_lm(next_sentence=True)
    with pytest.raises(ValueError, match="next_sentence=False. Received: y=None"):
        task.fit((toy.TEXTS, toy.TEXTS), verbose=0)
    task.fit((toy.TEXTS, toy.TEXTS[::-1]), np.arange(12) % 2, verbose=0)


def test_a_preset_gives_the_same_task_back(tmp_path):
    task = toy.masked_lm(next_sentence=True)
    task.save_to_preset(tmp_path / "preset")
    twin = MaskedLM.from_preset(tmp_path / "preset")
    text = "the [MASK] sat"
    assert twin.fill_mask(text) == task.fill_mask(text)
    assert twin.next_sentence and twin.preprocessor.get_config() == task.preprocessor.get_config()


def test_a_deberta_fills_masks_once_its_heads_are_trained_or_given():
    def make():
        size = {**toy.SIZE, "num_layers": 2}
        backbone = DebertaBackbone(toy.tokenizer().vocabulary_size, **size, span=4)
        return MaskedLM(backbone, preprocessor=MaskedLMPreprocessor(toy.tokenizer(), 8))

    trained, text = make(), "the [MASK] sat"
    with pytest.raises(ValueError, match="random ones for enhanced_mask_decoder, masked_lm_head$"):
        trained.fill_mask(text)
    trained.fit(toy.TEXTS, batch_size=12, verbose=0)
    given = make()
    given.set_weights(trained.get_weights())
    expected = trained.fill_mask(text, top_k=1)[0][0]
    token, probability = given.fill_mask(text, top_k=1)[0][0]
    assert token == expected[0] and abs(probability - expected[1]) < 1e-5
    given.newly_initialised = ("masked_lm_head/dense/kernel",)
    with pytest.raises(ValueError, match="random ones for masked_lm_head$"):
        given.fill_mask(text)


def test_an_lstm_on_top_has_no_head_for_masks():
    with pytest.raises(ValueError, match="of transformer blocks.*Received: BiLSTMBackbone"):
        MaskedLM(BiLSTMBackbone(toy.backbone(num_layers=1)))
