import json

from keras_bert3.benchmarks.superglue import BOOLQ, CB, RTE, WIC, WSC
from tests.benchmarks.files import real, write


def test_truth_values_are_names(tmp_path):
    row = {"question": "is it", "passage": "It is.", "idx": 4, "label": True}
    write(tmp_path / "val.jsonl", json.dumps(row), json.dumps({**row, "label": False}))
    examples = BOOLQ.read(tmp_path, "dev")
    assert examples.inputs == (["is it"] * 2, ["It is."] * 2)
    assert examples.labels == ["true", "false"] and examples.ids == ["4", "4"]
    path = BOOLQ.write_submission(tmp_path, ["true", "false"])
    assert path.name == "BoolQ.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"idx": 0, "label": "true"},
        {"idx": 1, "label": "false"},
    ]


def test_pairs(tmp_path):
    rows = [{"premise": "a", "hypothesis": "b", "label": label, "idx": 0} for label in CB.labels]
    write(tmp_path / "train.jsonl", *map(json.dumps, rows))
    assert CB.read(tmp_path, "train").labels == ["entailment", "contradiction", "neutral"]
    write(tmp_path / "test.jsonl", json.dumps({"premise": "a", "hypothesis": "b", "idx": 0}))
    assert RTE.read(tmp_path, "test").labels is None


def test_a_word_goes_before_its_sentence(tmp_path):
    row = {"word": "place", "sentence1": "My place.", "sentence2": "A place.", "label": False}
    write(tmp_path / "val.jsonl", json.dumps(row))
    assert WIC.read(tmp_path, "dev").inputs == (["place: My place."], ["A place."])


def test_a_pronoun_is_marked(tmp_path):
    target = {"span1_index": 0, "span1_text": "Mark", "span2_index": 3, "span2_text": "he"}
    row = {"text": "Mark told Pete he lied .", "target": target, "label": True}
    write(tmp_path / "train.jsonl", json.dumps(row))
    examples = WSC.read(tmp_path, "train")
    assert examples.inputs == (["Mark told Pete *he* lied ."], ["Mark"])
    fetched = WSC.from_hub([{"text": row["text"], **target, "label": 1, "idx": 0}])
    assert fetched.inputs == examples.inputs and fetched.labels == ["true"]


def test_real_files():
    examples = WIC.read(real("glue", "WiC"), "dev")
    assert len(examples) == 638 and set(examples.known_labels()) == {"true", "false"}
