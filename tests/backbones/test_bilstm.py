import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.backbones.bilstm import restored
from keras_bert3.benchmarks.named_entities import EntityBenchmark
from keras_bert3.runs import fine_tuning_tasks
from tests.layer_checks import to_numpy
from tests.tasks import toy

IDS = np.array([[2, 7, 8, 9, 3]])


def inputs(padding=0):
    ids = np.pad(IDS, ((0, 0), (0, padding)))
    return {"token_ids": ids, "padding_mask": np.arange(5 + padding)[None] < 5}


@pytest.fixture(scope="module")
def trained():
    return kb.BiLSTMBackbone(toy.backbone(initializer_range=0.5), lstm_dim=3)


@pytest.fixture(scope="module")
def features():
    return kb.BiLSTMBackbone(toy.backbone(), 2, layers=(0, -1), combine="weighted_sum")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loop(weights, rows):
    """One direction, a token at a time."""
    kernel, recurrent, bias = (to_numpy(weight.value) for weight in weights)
    hidden, cell, found = np.zeros(3), np.zeros(3), []
    for row in rows:
        enter, forget, candidate, leave = np.split(row @ kernel + hidden @ recurrent + bias, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(candidate)
        hidden = sigmoid(leave) * np.tanh(cell)
        found.append(hidden)
    return np.array(found)


def test_it_reads_the_encoder_in_both_directions_wherever_padding_is(trained):
    read = to_numpy(trained.encoder(inputs())["sequence_output"])[0]
    weights = trained.lstm[0].trainable_weights
    forward, backward = loop(weights[:3], read), loop(weights[3:], read[::-1])[::-1]
    for padding in (0, 1):
        outputs = trained(inputs(padding))
        hidden = to_numpy(outputs["sequence_output"])[0, :5]
        np.testing.assert_allclose(hidden, np.hstack([forward, backward]), atol=1e-5)
        pooled = to_numpy(trained.pool(outputs, inputs(padding)))[0]
        np.testing.assert_allclose(pooled, np.hstack([forward[-1], backward[0]]), atol=1e-5)


def test_the_encoder_is_trained_unless_its_layers_are_features(trained, features):
    encoder = trained.encoder
    without_pooler = len(encoder.weights) - len(encoder.pooler.weights)
    assert len(trained.trainable_weights) == without_pooler + 6
    assert len(features.trainable_weights) == 2 * 6 + 2  # two LSTMs both ways, and the sum's
    assert not features.encoder.trainable_weights


def test_layers_stand_side_by_side():
    made = kb.BiLSTMBackbone(toy.backbone(), layers=(0, 1))
    outputs = made(inputs(), layer_outputs=True)["layer_outputs"]
    every_layer = made.encoder(inputs(), layer_outputs=True)["layer_outputs"]
    expected = np.concatenate([to_numpy(x) for x in every_layer], -1)
    np.testing.assert_allclose(to_numpy(outputs[0]), expected, atol=1e-6)


def test_a_preset_is_fine_tuned_by_the_benchmarks_task(features, tmp_path):
    folder = str(tmp_path / "features")
    features.save_to_preset(folder, tokenizer=toy.tokenizer())
    assert fine_tuning_tasks.origin_of(folder)[:2] == ("bert", 16)
    task = fine_tuning_tasks.load_task(folder, EntityBenchmark("toy", {}, ("PER",)), 16)
    assert isinstance(task, kb.TokenClassifier) and not task.backbone.encoder.trainable
    expected, found = (to_numpy(x(inputs())["sequence_output"]) for x in (features, task.backbone))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": (2,)}, r"layers from 0 .* to 1.*layers=\[2\]"),
        ({"layers": ()}, r"layers=\[\]"),
        ({"combine": "sum"}, "combine among .*'sum'"),
        ({"num_lstm_layers": 0}, "num_lstm_layers >= 1"),
    ],
)
def test_what_there_is_not_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        kb.BiLSTMBackbone(toy.backbone(), **arguments)


def test_no_class_but_a_backbone_is_restored():
    for name in ("TextClassifier", "os"):
        with pytest.raises(ValueError, match=f"a backbone of keras_bert3. Received: '{name}'"):
            restored({"class": name, "config": {}})
