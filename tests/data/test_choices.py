import json
import os
from pathlib import Path

import pytest

from keras_bert3.data import choices

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "nowhere"))
real_data = pytest.mark.skipif(not DATA.is_dir(), reason="KERAS_BERT3_DATA is no folder")


def test_copa(tmp_path):
    (tmp_path / "copa.xml").write_text(
        '<copa-corpus version="1.0"><item id="1" asks-for="effect" most-plausible-alternative="2">'
        "<p>It froze. </p><a1>The lake steamed.</a1><a2>The lake iced over.</a2></item>"
        "</copa-corpus>"
    )
    (row,) = choices.read_copa(tmp_path / "copa.xml")
    assert row == ("It froze.", "effect", ["The lake steamed.", "The lake iced over."], 1)
    (tmp_path / "broken.xml").write_text("<copa-corpus>")
    with pytest.raises(ValueError, match="COPA's XML.*broken.xml.*Received: no element found"):
        choices.read_copa(tmp_path / "broken.xml")


def test_dream(tmp_path):
    questions = [
        {"question": "Who?", "choice": ["He.", "She.", "Both."], "answer": "She."},
        {"question": "When?", "choice": ["Now.", "Then.", "Never."], "answer": "Now."},
    ]
    text = json.dumps([[["M: Me?", "W: No, me."], questions, "1-1"]])
    (tmp_path / "dream.json").write_text(text)
    first, second = choices.read_dream(tmp_path / "dream.json")
    assert first == ("M: Me?\nW: No, me.", "Who?", ["He.", "She.", "Both."], 1)
    assert second.answer == 0


def test_referents(tmp_path):
    (tmp_path / "dpr.txt").write_text(
        "The bird saw the others because they sang.\nthey\nThe bird,the others\nThe others\n\n"
        "The cup broke on the mat since [MASK] fell. \n[MASK]\nThe cup , The mat\nThe cup \n"
    )
    first, second = choices.read_referents(tmp_path / "dpr.txt")
    assert first == ("The bird saw the others because", "sang.", ["The bird", "the others"], 1)
    assert second == ("The cup broke on the mat since", "fell.", ["The cup", "The mat"], 0)
    (tmp_path / "bad.txt").write_text("No pronoun here.\nthey\na,b\na\n")
    with pytest.raises(ValueError, match="bad.txt.*Received: \\['No pronoun here.', 'they'"):
        choices.read_referents(tmp_path / "bad.txt")


def test_tables(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text('index\tsentence\tlabel\n0\ta "joy\t1\n1\ta bore\t0\n')
    assert choices.read_columns(path, ("label", "sentence")) == [["1", 'a "joy'], ["0", "a bore"]]
    assert choices.read_columns(path, (2,))[1:] == [["1"], ["0"]]
    with pytest.raises(ValueError, match="columns text in .*Received: index, sentence, label"):
        choices.read_columns(path, ("text",))


@real_data
def test_real_files_are_read_whole():
    choice = DATA / "choice"
    assert len(choices.read_copa(choice / "copa-test.xml")) == 500
    assert len(choices.read_dream(choice / "dream" / "dev.json")) == 2040
    pairs = choices.read_referents(choice / "dpr_test.c.txt")
    assert len(pairs) == 564 and sum(row.answer for row in pairs) == 282
    assert len(choices.read_referents(choice / "wsc273.txt")) == 273
    assert len(choices.read_columns(DATA / "glue" / "CoLA" / "dev.tsv", (1, 3))) == 1043
