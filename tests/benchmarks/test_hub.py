import sys
import types

import pytest

from keras_bert3.benchmarks import hub

ROWS = {
    ("glue", "mnli", "validation_matched"): [
        {"premise": "a", "hypothesis": "b", "label": 2, "idx": 5}
    ],
    ("glue", "cola", "test"): [{"sentence": "a", "label": -1, "idx": 0}],
    ("squad_v2", "train"): [
        {
            "id": "x",
            "question": "q",
            "context": "c",
            "answers": {"text": ["c"], "answer_start": [0]},
        }
    ],
    ("conll2003", "validation"): [{"tokens": ["Jim", "ran"], "ner_tags": [1, 0]}],
    ("swag", "train"): [
        {"sent1": "a", "sent2": "b", **{f"ending{i}": f"e{i}" for i in range(4)}, "label": 3}
    ],
    ("race", "all", "test"): [
        {"article": "a", "question": "q", "options": ["1", "2"], "answer": "B", "example_id": "i"}
    ],
    ("super_glue", "copa", "train"): [
        {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": 0, "idx": 1}
    ],
    ("dream", "validation"): [
        {
            "dialogue": ["A.", "B."],
            "question": "q",
            "choice": ["x", "y"],
            "answer": "y",
            "dialogue_id": "d",
        }
    ],
    ("ai2_arc", "ARC-Easy", "test"): [
        {
            "id": "i",
            "question": "q",
            "choices": {"label": ["1", "2"], "text": ["x", "y"]},
            "answerKey": "2",
        }
    ],
}


@pytest.fixture
def datasets(monkeypatch):
    """A stand-in for the package, with one record of each benchmark."""
    module = types.ModuleType("datasets")
    module.load_dataset = lambda *name, split: ROWS[(*name, split)]
    monkeypatch.setitem(sys.modules, "datasets", module)


@pytest.mark.parametrize(
    ("name", "split", "columns", "labels"),
    [
        ("mnli", "dev", (["a"], ["b"]), ["contradiction"]),
        ("cola", "test", (["a"],), None),
        ("squad2", "train", (["q"], ["c"]), [{"text": ["c"], "answer_start": [0]}]),
        ("conll2003", "dev", ([["Jim", "ran"]],), [["B-PER", "O"]]),
        ("swag", "train", (["a"], [["b e0", "b e1", "b e2", "b e3"]]), [3]),
        ("race", "test", (["a"], [["q 1", "q 2"]]), [1]),
        (
            "copa",
            "train",
            (["p"], [[f"What was the CAUSE of this? {choice}" for choice in "ab"]]),
            [0],
        ),
        ("dream", "dev", (["A.\nB."], [["q x", "q y"]]), [1]),
        ("arc_easy", "test", ([""], [["q x", "q y"]]), [1]),
    ],
)
def test_records_become_the_examples_that_files_give(datasets, name, split, columns, labels):
    examples = hub.fetch(name, split)
    assert examples.columns == columns and examples.labels == labels


def test_every_benchmark_is_found_by_name():
    assert len(hub.BENCHMARKS) == 11 + 2 + 5 + 7 + 2 + 3
    assert hub.find("mrpc").name == "MRPC"
    with pytest.raises(ValueError, match="Expected a benchmark among.*Received: 'nothing'"):
        hub.find("nothing")


def test_what_cannot_be_fetched_is_said(monkeypatch):
    with pytest.raises(ValueError, match="'story_cloze', 'dev'"):
        hub.fetch("story_cloze", "dev")
    with pytest.raises(ValueError, match="'mrpc', 'valid'"):
        hub.fetch("mrpc", "valid")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match="the package `datasets` to fetch MRPC"):
        hub.fetch("mrpc", "dev")
