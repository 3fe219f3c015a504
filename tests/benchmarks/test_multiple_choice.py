import json

import pytest

from keras_bert3.benchmarks.multiple_choice import (
    ARC_CHALLENGE,
    ARC_EASY,
    COPA,
    DREAM,
    RACE,
    STORY_CLOZE,
    SWAG,
)
from tests.benchmarks.files import real, write


def test_swag(tmp_path):
    header = (
        ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
    )
    write(
        tmp_path / "val.csv",
        f"{header},label",
        '9,v,1,x,"A man, tall.",He,gold,"runs, fast",sits,"says ""no""",eats,2',
    )
    examples = SWAG.read(tmp_path, "dev")
    assert examples.columns == (
        ["A man, tall."],
        [["He runs, fast", "He sits", 'He says "no"', "He eats"]],
    )
    assert examples.labels == [2] and examples.ids == ["9"]
    write(tmp_path / "test.csv", header, "1,v,1,x,a,b,gold,c,d,e,f")
    assert SWAG.read(tmp_path, "test").labels is None


def test_race(tmp_path):
    for level, letter in (("high", "D"), ("middle", "A")):
        passage = {
            "article": f"{level} text",
            "questions": ["Why?", "Who?"],
            "options": [["a", "b", "c", "d"]] * 2,
            "answers": [letter, "B"],
            "id": "x",
        }
        write(tmp_path / "dev" / level / "1.txt", json.dumps(passage))
    examples = RACE.read(tmp_path, "dev")
    assert examples.labels == [3, 1, 0, 1]
    assert examples.columns[0] == ["high text"] * 2 + ["middle text"] * 2
    assert examples.columns[1][1] == ["Who? a", "Who? b", "Who? c", "Who? d"]
    assert examples.ids[2] == "middle/1/0"


def test_story_cloze(tmp_path):
    header = ["InputStoryid", *(f"InputSentence{i}" for i in range(1, 5))]
    header += ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
    write(
        tmp_path / "cloze_test_val__spring2016.csv",
        ",".join(header),
        "id7,One.,Two.,Three.,Four.,Good.,Bad.,2",
    )
    examples = STORY_CLOZE.read(tmp_path, "train")
    assert examples.columns == (["One. Two. Three. Four."], [["Good.", "Bad."]])
    assert examples.labels == [1] and examples.ids == ["id7"]


COPA_XML = """<?xml version="1.0"?>
<copa-corpus version="1.0">
  <item id="3" asks-for="effect" most-plausible-alternative="2">
    <p>It rained.</p><a1>It was dry.</a1><a2>It was wet.</a2>
  </item>
</copa-corpus>"""


def test_copa_in_both_of_its_formats(tmp_path):
    row = {"premise": "It rained.", "choice1": "It was dry.", "choice2": "It was wet."}
    row |= {"question": "effect", "label": 1, "idx": 3}
    write(tmp_path / "val.jsonl", json.dumps(row))
    write(tmp_path / "copa.xml", COPA_XML)
    first, second = COPA.read(tmp_path, "dev"), COPA.read(tmp_path / "copa.xml", "dev")
    assert first == second
    question = "What happened as a RESULT?"
    assert first.inputs == (
        ["It rained."],
        [[f"{question} It was dry.", f"{question} It was wet."]],
    )
    assert first.labels == [1] and first.ids == ["3"]


def test_dream(tmp_path):
    row = {"question": "Who?", "choice": ["A.", "B.", "C."], "answer": "C."}
    write(tmp_path / "dev.json", json.dumps([[["M: Hi.", "W: Yes."], [row], "4-1"]]))
    examples = DREAM.read(tmp_path, "dev")
    assert examples.inputs == (["M: Hi.\nW: Yes."], [["Who? A.", "Who? B.", "Who? C."]])
    assert examples.labels == [2] and examples.ids == ["4-1/0"]
    (item,) = DREAM.read_items(tmp_path, "dev")
    assert item == ("M: Hi.\nW: Yes.", "Who?", ["A.", "B.", "C."], 2, "4-1/0")


def test_arc_in_both_of_its_formats(tmp_path):
    def item(labels, key, name):
        choices = [{"text": f"t{label}", "label": label} for label in labels]
        return json.dumps(
            {"id": name, "question": {"stem": "Q?", "choices": choices}, "answerKey": key}
        )

    write(tmp_path / "ARC-Easy-Dev.jsonl", item("1234", "3", "x"), item("ABC", "A", "y"))
    examples = ARC_EASY.read(tmp_path, "dev")
    assert examples.labels == [2, 0] and examples.ids == ["x", "y"]
    assert examples.columns[1] == [
        ["Q? t1", "Q? t2", "Q? t3", "Q? t4"],
        ["Q? tA", "Q? tB", "Q? tC", ""],
    ]
    write(tmp_path / "c.csv", '"Q, then?",a,b,c,d,C', "Q?,,,,,2", "Q?,a,b,c,d,1")
    examples = ARC_CHALLENGE.read(tmp_path / "c.csv", "dev")
    assert examples.labels == [2, 0] and examples.skipped == (2,)
    assert examples.columns[1][0][0] == "Q, then? a"


def test_scores_and_submissions(tmp_path):
    write(tmp_path / "copa.xml", COPA_XML)
    examples = COPA.read(tmp_path / "copa.xml", "dev")
    assert COPA.score(examples, [1]) == {"accuracy": 1.0}
    assert COPA.write_submission(tmp_path, [1, 0]).read_text() == "1\n0\n"


def test_broken_files_are_named(tmp_path):
    write(tmp_path / "copa.xml", COPA_XML[:80])
    with pytest.raises(ValueError, match="copa.xml' in the format of COPA"):
        COPA.read(tmp_path / "copa.xml", "dev")
    for text in ("[[[], [{}], 1]]", "<xml>", "[[[], [[]], 1]]"):
        write(tmp_path / "dev.json", text)
        with pytest.raises(ValueError, match="dev.json' in the format of DREAM"):
            DREAM.read(tmp_path, "dev")
    with pytest.raises(ValueError, match="Expected a split among"):
        DREAM.read(tmp_path, "valid")


def test_real_files():
    copa = COPA.read(real("choice", "copa-dev.xml"), "dev")
    assert len(copa) == 500 and 200 < sum(copa.known_labels()) < 300
    assert len(DREAM.read(real("choice", "dream"), "dev")) == 2040
    arc = ARC_CHALLENGE.read(real("choice", "arc", "arc_challenge_dev.csv"), "dev")
    assert len(arc) + len(arc.skipped) == 1119 and set(arc.known_labels()) == {0, 1, 2, 3}
