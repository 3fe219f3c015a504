import json

import keras
import numpy as np
import pytest

from keras_bert3 import DebertaBackbone, GPTBackbone, MaskedLM, TextClassifier
from keras_bert3.checkpoints import preset
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.text_classifier import ClassificationLoss
from tests.layer_checks import to_numpy
from tests.tasks import toy

NAMES = ["cats", "dogs"]
LABELS = ["cats" if "cat" in text else "dogs" for text in toy.TEXTS]


def make(labels=NAMES, sequence_length=12, **arguments):
    preprocessor = Preprocessor(toy.tokenizer(), sequence_length)
    return TextClassifier(toy.backbone(), labels=labels, preprocessor=preprocessor, **arguments)


@pytest.fixture(scope="module")
def trained():
    """A classifier after some epochs at a high rate, and what `fit` said."""
    keras.utils.set_random_seed(3)
    task = make()
    task.compile(keras.optimizers.Adam(2e-2))
    history = task.fit(toy.TEXTS, LABELS, epochs=12, batch_size=6, verbose=0).history
    return task, history


def inputs(rows=2, length=6):
    ids = np.random.default_rng(0).integers(5, 20, (rows, length)).astype("int32")
    return {"token_ids": ids, "padding_mask": np.ones((rows, length), bool)}


@pytest.mark.graph
def test_texts_and_names_are_learned(trained):
    task, history = trained
    assert history["loss"][-1] < history["loss"][0] - 0.3 and history["accuracy"][-1] > 0.9
    assert [row[0][0] for row in task.classify(toy.TEXTS[:4])] == LABELS[:4]


def test_tf_data_is_read_on_every_backend(trained):
    tf = pytest.importorskip("tensorflow")
    task, _ = trained
    numbers = [NAMES.index(label) for label in LABELS]
    data = tf.data.Dataset.from_tensor_slices((task.preprocess(toy.TEXTS), numbers)).batch(6)
    received = task.evaluate(data, verbose=0, return_dict=True)
    expected = task.evaluate(toy.TEXTS, LABELS, 6, verbose=0, return_dict=True)
    assert received == pytest.approx(expected, rel=1e-5)


def test_the_loss_is_the_mean_of_the_formula(trained):
    task, _ = trained
    logits = task.predict(toy.TEXTS, verbose=0, batch_size=6).astype("float64")
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    numbers = [NAMES.index(label) for label in LABELS]
    expected = -np.log(probabilities[np.arange(12), numbers]).mean()
    weights = np.arange(12, dtype="float32") % 3
    weighted = (-np.log(probabilities[np.arange(12), numbers]) * weights).sum() / weights.sum()
    received = task.evaluate(toy.TEXTS, LABELS, verbose=0, batch_size=6, return_dict=True)
    assert abs(received["loss"] - expected) < 1e-5
    received = task.evaluate(
        toy.TEXTS, LABELS, 12, sample_weight=weights, verbose=0, return_dict=True
    )
    assert abs(received["loss"] - weighted) < 1e-5


def test_predictions_come_in_the_order_of_the_texts(trained):
    task, _ = trained
    texts = toy.TEXTS[:5] + ["cat"]
    expected = to_numpy(task(task.preprocess(texts)))
    np.testing.assert_allclose(task.predict(texts, batch_size=6, verbose=0), expected, atol=1e-5)


def test_classify_names_the_likeliest_first(trained):
    task, _ = trained
    probabilities = task.probabilities(toy.TEXTS[:1], batch_size=6)[0]
    assert abs(probabilities.sum() - 1) < 1e-6
    both = task.classify(toy.TEXTS[0], top_k=2)
    assert [name for name, _ in both] == [NAMES[i] for i in np.argsort(-probabilities)]
    np.testing.assert_allclose([p for _, p in both], np.sort(probabilities)[::-1], rtol=1e-5)


def test_the_logits_are_a_linear_function_of_what_the_backbone_pools():
    task = make(dropout=0.5)
    pooled = to_numpy(task.backbone(inputs())["pooled_output"])
    kernel, bias = (to_numpy(weight) for weight in task.classifier.weights)
    np.testing.assert_allclose(to_numpy(task(inputs())), pooled @ kernel + bias, atol=1e-5)
    assert not np.allclose(to_numpy(task(inputs(), training=True)), pooled @ kernel + bias)


def test_GP3_gpt_reads_the_last_token_wherever_padding_is():
    task = TextClassifier(GPTBackbone(24, 1, 2, 16, 32, max_sequence_length=16), 3)
    row = np.array([[7, 8, 9, 10]], "int32")
    right = {"token_ids": np.pad(row, ((0, 0), (0, 2))), "padding_mask": [[1, 1, 1, 1, 0, 0]]}
    left = {"token_ids": np.pad(row, ((0, 0), (2, 0))), "padding_mask": [[0, 0, 1, 1, 1, 1]]}
    bare = {"token_ids": row, "padding_mask": [[1] * 4]}
    right, left, bare = (
        to_numpy(task({**x, "padding_mask": np.array(x["padding_mask"])}))
        for x in (right, left, bare)
    )
    np.testing.assert_allclose(right, bare, atol=1e-5)
    np.testing.assert_allclose(left, bare, atol=1e-5)


def test_deberta_reads_the_first_token_through_a_pooler_of_its_own():
    task = TextClassifier(DebertaBackbone(24, 1, 2, 16, 32, max_sequence_length=16), 3)
    x = inputs()
    hidden = to_numpy(task.backbone(x)["sequence_output"])[:, 0]
    expected = to_numpy(task.classifier(task.pooler.dense(hidden)))
    np.testing.assert_allclose(to_numpy(task(x)), expected, atol=1e-5)
    assert set(task.heads) == {"pooler", "classifier"}


def test_lengths_may_be_unknown():
    x = {name: keras.Input((None,), dtype="int32") for name in ("token_ids", "padding_mask")}
    assert make()(x).shape == (None, 2)


def test_G2_examples_without_labels_are_refused_before_any_step():
    task = make()
    x, y = inputs(2), np.array([0, -1])
    for call in (
        lambda: task.fit(toy.TEXTS, [-1] * 12, verbose=0),
        lambda: task.evaluate(toy.TEXTS, [-1] * 12, verbose=0),
        lambda: task.evaluate(toy.TEXTS, verbose=0),
        lambda: task.fit(toy.TEXTS, LABELS, validation_data=(toy.TEXTS, [-1] * 12), verbose=0),
        lambda: task.fit(x, y, verbose=0),
    ):
        with pytest.raises(ValueError, match="no labels"):
            call()
    assert not task.compiled or int(task.optimizer.iterations) == 0


def test_G2_a_label_that_is_no_class_never_counts_as_a_loss():
    loss = ClassificationLoss()
    logits = np.array([[2.0, 1.0], [0.0, 1.0]], "float32")
    assert np.isnan(to_numpy(loss(np.array([0, -1]), logits)))
    assert np.isnan(to_numpy(loss(np.array([0, 2]), logits)))
    expected = np.log(np.exp(logits).sum(-1)) - logits[[0, 1], [0, 1]]
    np.testing.assert_allclose(to_numpy(loss(np.array([0, 1]), logits)), expected.mean(), rtol=1e-5)


def test_regression_has_one_output_and_squared_errors():
    task = TextClassifier(toy.backbone(), 1, Preprocessor(toy.tokenizer(), 12))
    wanted = np.linspace(0, 5, 12)
    received = task.predict(toy.TEXTS, batch_size=6, verbose=0)
    assert received.shape == (12, 1)
    scores = task.evaluate(toy.TEXTS, wanted, batch_size=6, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], ((received[:, 0] - wanted) ** 2).mean(), rtol=1e-4)
    with pytest.raises(ValueError, match="Received: a regression"):
        task.classify("the cat")
    with pytest.raises(ValueError, match="finite numbers"):
        task.evaluate(toy.TEXTS, [np.nan] * 12, verbose=0)


def test_pairs_of_texts_come_as_two_lists_or_as_a_list_of_pairs():
    task = make()
    first, second = toy.TEXTS[:3], toy.TEXTS[1:4]
    pairs = list(zip(first, second, strict=True))
    expected = task.predict((first, second), verbose=0)
    np.testing.assert_allclose(task.predict(pairs, verbose=0), expected, atol=1e-6)
    assert not np.allclose(task.predict(first, verbose=0), expected)
    for call in (task.predict, task.fit, task.evaluate):  # columns or rows? nobody can know
        with pytest.raises(ValueError, match=r"in a tuple.*Received: a list of 2 whose first is"):
            call([first[:2], second[:2]], **({} if call == task.predict else {"y": LABELS[:2]}))


def test_the_schedule_covers_the_updates_of_this_run():
    task = make()
    task.fit(toy.TEXTS, LABELS, epochs=1, batch_size=6, verbose=0)
    schedule = task.optimizer._learning_rate
    assert (schedule.peak, schedule.total_steps) == (3e-5, 2)


def test_a_preprocessor_without_a_length_truncates_to_the_position_table():
    preprocessor = Preprocessor(toy.tokenizer())
    task = TextClassifier(toy.backbone(), 2, preprocessor)
    assert task.predict(["the cat " * 100], verbose=0).shape == (1, 2)


def test_a_preset_keeps_names_and_head(trained, tmp_path):
    task, _ = trained
    task.save_to_preset(tmp_path / "p")
    with pytest.raises(ValueError, match="overwrite=True"):
        task.save_to_preset(tmp_path / "p")
    task.save_to_preset(tmp_path / "p", overwrite=True)
    assert json.loads((tmp_path / "p" / "config.json").read_text())["task"]["config"]["labels"]
    twin = TextClassifier.from_preset(tmp_path / "p")
    assert twin.labels == NAMES and twin.classify(toy.TEXTS[0]) == task.classify(toy.TEXTS[0])


def test_G1_a_trained_head_keeps_the_meaning_of_its_outputs(trained, tmp_path):
    trained[0].save_to_preset(tmp_path / "p")
    with pytest.raises(ValueError, match=r"labels=\['cats', 'dogs'\].*Received: labels=\('dogs'"):
        TextClassifier.from_preset(tmp_path / "p", labels=("dogs", "cats"))
    with pytest.raises(ValueError, match="Expected num_classes=2.*Received: num_classes=3"):
        TextClassifier.from_preset(tmp_path / "p", num_classes=3)
    assert TextClassifier.from_preset(tmp_path / "p", labels=("cats", "dogs")).labels == NAMES
    task, report = preset.read_task(
        tmp_path / "p", TextClassifier, new_heads=("classifier",), num_classes=3
    )
    assert task.labels is None and task.num_classes == 3
    assert report.newly_initialised == ("classifier/kernel", "classifier/bias")


def test_the_head_starts_anew_on_another_tasks_checkpoint(tmp_path):
    toy.masked_lm().save_to_preset(tmp_path / "p")
    task, report = preset.read_task(
        tmp_path / "p", TextClassifier, num_classes=3, sequence_length=9
    )
    assert report.newly_initialised == ("classifier/kernel", "classifier/bias")
    assert task.preprocessor.sequence_length == 9 and task.backbone.pooler.trainable
    assert TextClassifier.from_preset(tmp_path / "p", num_classes=2).preprocessor.get_config() == {
        "sequence_length": None,
        "max_sequence_length": 32,
        "pad_to_multiple_of": 16,
    }
    with pytest.raises(ValueError, match="num_classes or labels. Received: neither"):
        TextClassifier.from_preset(tmp_path / "p")


def test_a_pooler_that_a_masked_lm_froze_is_trained_again():
    backbone = toy.backbone()
    MaskedLM(backbone, next_sentence=False)
    assert not backbone.pooler.trainable
    TextClassifier(backbone, 2)
    assert backbone.pooler.trainable
    backbone.trainable = False
    TextClassifier(backbone, 2)
    assert not backbone.pooler.trainable
