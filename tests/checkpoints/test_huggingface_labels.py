import types

import pytest

from keras_bert3.checkpoints.huggingface_labels import entries, task_config

NAMED = {"id2label": {"1": "b", "0": "a"}}
GENERIC = {"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (NAMED, {"num_classes": 2, "labels": ["a", "b"]}),
        (GENERIC, {"num_classes": 3, "labels": None}),
        ({}, {"num_classes": 2, "labels": None}),
        ({"num_labels": 5}, {"num_classes": 5, "labels": None}),
        ({"id2label": {"0": "x", "1": "x"}}, {"num_classes": 2, "labels": None}),
        ({**NAMED, "p": 0.3}, {"num_classes": 2, "labels": ["a", "b"], "dropout": 0.3}),
        ({**NAMED, "p": None}, {"num_classes": 2, "labels": ["a", "b"]}),
    ],
)
def test_G1_classes_are_counted_and_named(config, expected):
    assert task_config(config, "TextClassifier", "p") == expected


def test_other_tasks_have_no_classes():
    assert task_config({**NAMED, "p": 0.3}, "MaskedLM", "p") == {}
    assert task_config({**NAMED, "p": 0.3}, "MultipleChoice", "p") == {"dropout": 0.3}
    assert task_config(NAMED, None) == {}


def test_what_is_written_is_read_again():
    backbone = types.SimpleNamespace(dropout=0.1)
    assert entries(backbone) == {}
    for labels, count, dropout in ((["a", "b"], 2, 0.1), (None, 3, 0.2), (None, 1, 0.1)):
        task = types.SimpleNamespace(
            backbone=backbone, labels=labels, num_classes=count, dropout=dropout
        )
        written = entries(task, "p")
        expected = {"num_classes": count, "labels": labels}
        expected |= {"dropout": dropout} if dropout != 0.1 else {}
        assert task_config(written, "TextClassifier", "p") == expected
        assert ("problem_type" in written) == (count == 1)
