import json

import pytest

from keras_bert3.benchmarks.squad import SQUAD1, SQUAD2
from keras_bert3.data.answers import locate_answers
from tests.benchmarks.files import real, write


def question(name, answers, **more):
    rows = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": f"{name}?", "answers": rows, **more}


def content():
    first = [question("a", [("cat", 4), ("The cat", 0)]), question("b", [], is_impossible=True)]
    second = [question("c", [("dog", 2)], is_impossible=True, plausible_answers=[])]
    return {
        "version": "v2.0",
        "data": [
            {"title": "One", "paragraphs": [{"context": "The cat.", "qas": first}]},
            {"title": "Two", "paragraphs": [{"context": "A dog.", "qas": second}]},
        ],
    }


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "dev-v2.0.json", json.dumps(content()))
    return tmp_path


def test_questions_texts_and_answers(folder):
    examples = SQUAD2.read(folder, "dev")
    assert examples.inputs == (["a?", "b?", "c?"], ["The cat.", "The cat.", "A dog."])
    nothing = {"text": [], "answer_start": []}
    both = {"text": ["cat", "The cat"], "answer_start": [4, 0]}
    assert examples.labels == [both, nothing, nothing]
    assert examples.ids == ["a", "b", "c"]
    assert SQUAD2.read(folder, "dev", titles=["Two"]).ids == ["c"]


def test_scores_and_thresholds(folder):
    examples = SQUAD2.read(folder, "dev")
    plain = SQUAD2.score(examples, ["the CAT!", "", "dog"])
    assert plain["exact"] == pytest.approx(200 / 3) and plain["has_answer_f1"] == 100.0
    margins = SQUAD2.score(examples, ["cat", "The", "dog"], [-3.0, 0.5, -1.0], null_threshold=-2.0)
    assert margins["exact"] == 100.0
    assert margins["best_f1"] == 100.0 and margins["best_f1_threshold"] == -3.0
    answerable = examples.first(1)
    assert SQUAD1.score(answerable, ["cat"])["exact"] == 100.0


def test_submissions(folder, tmp_path):
    examples = SQUAD2.read(folder, "dev")
    path = SQUAD2.write_submission(tmp_path / "out", examples, ["ä", "", "x"], [0.5, 1.0, -2.0])
    assert json.loads(path.read_text()) == {"a": "ä", "b": "", "c": "x"}
    odds = json.loads((tmp_path / "out" / "null_odds.json").read_text())
    assert odds == {"a": 0.5, "b": 1.0, "c": -2.0}


def test_G2_questions_without_answers_are_no_labels(tmp_path):
    hidden = content()
    for article in hidden["data"]:
        for row in article["paragraphs"][0]["qas"]:
            row.pop("is_impossible", None)
            row["answers"] = []
    write(tmp_path / "test-v2.0.json", json.dumps(hidden))
    examples = SQUAD2.read(tmp_path, "test")
    assert examples.labels is None
    with pytest.raises(ValueError, match="no labels"):
        SQUAD2.score(examples, ["", "", ""])


def test_broken_files_are_named(tmp_path):
    for text in ("{", "{}", '{"data": [1]}'):
        write(tmp_path / "dev-v1.1.json", text)
        with pytest.raises(ValueError, match="dev-v1.1.json' in the format of SQuAD"):
            SQUAD1.read(tmp_path, "dev")
    with pytest.raises(ValueError, match=r"Expected a split among \['dev', 'train'\]"):
        SQUAD1.read(tmp_path, "test")


def test_real_files():
    xquad = SQUAD1.read(real("squad", "xquad_en.json"), "dev")
    assert len(xquad) == 1190
    located = locate_answers(xquad.columns[1], xquad.known_labels())
    assert not located.dropped and not located.moved
    for context, label, span in zip(
        xquad.columns[1], xquad.known_labels(), located.spans, strict=True
    ):
        assert context[slice(*span)] == label["text"][0].strip()
    gold = [label["text"][0] for label in xquad.known_labels()]
    assert SQUAD1.score(xquad, gold)["exact"] == 100.0
    half = SQUAD2.read(real("squad", "squad2_dev_half.json"), "dev")
    assert len(half) == 6078
    assert sum(bool(label["text"]) for label in half.known_labels()) == 2910
    hidden = SQUAD2.read(real("squad", "squad2_dev_otherhalf_noanswers.json"), "test")
    assert len(hidden) == 5915 and hidden.labels is None
