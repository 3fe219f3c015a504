"""Batches of grain; what needs the package itself is skipped without it."""

import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.tasks.grain_batches import GrainBatches, is_grain, with_length
from keras_bert3.tasks.preprocessor import Preprocessor
from tests.tasks import toy

LABELS = np.array([0, 1] * 6)


@pytest.fixture(scope="module")
def task():
    preprocessor = Preprocessor(toy.tokenizer(), 16)
    return kb.TextClassifier(toy.backbone(), labels=["a", "b"], preprocessor=preprocessor)


class MapDataset(list):
    """What grain's looks like from outside."""


MapDataset.__module__ = "grain._src.dataset"


def batches(task):
    inputs = task.preprocess(toy.TEXTS)
    parts = [slice(i, i + 4) for i in range(0, 12, 4)]
    return [({k: v[part] for k, v in inputs.items()}, LABELS[part]) for part in parts]


def check(task, data, inputs):
    """Two epochs, with as many updates as batches; no warning of data that ran out."""
    task.compile()
    task.fit(data, epochs=2, validation_data=data, verbose=0)
    assert int(task.optimizer.iterations) == 6
    expected = task.evaluate(toy.TEXTS, LABELS, 4, verbose=0, return_dict=True)
    received = task.evaluate(data, verbose=0, return_dict=True)
    assert received == pytest.approx(expected, rel=1e-5)
    logits = task.predict(toy.TEXTS, verbose=0)
    np.testing.assert_allclose(task.predict(inputs, verbose=0), logits, atol=1e-5)


def test_a_map_dataset_is_read_as_often_as_asked(task):
    data = MapDataset(batches(task))
    check(task, data, MapDataset(x for x, _ in data))


def test_grain_itself(task):
    grain = pytest.importorskip("grain")
    rows = grain.MapDataset.source(list(zip(toy.TEXTS, LABELS, strict=True))).batch(4)
    data = rows.map(lambda row: (task.preprocess(list(row[0])), row[1]))
    assert isinstance(with_length(data), GrainBatches)
    check(task, data, data.map(lambda row: row[0]))
    loader = data.to_iter_dataset()
    assert is_grain(loader) and with_length(loader) is loader


def test_anything_else_is_left_as_it_is():
    for data in (None, ["a"], {"token_ids": np.zeros((1, 2))}, np.zeros(2)):
        assert with_length(data) is data and not is_grain(data)
