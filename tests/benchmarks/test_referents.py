import pytest

from keras_bert3.benchmarks.referents import read_referents
from tests.benchmarks.files import real, write


def test_sentences_are_cut_at_the_pronoun(tmp_path):
    path = write(
        tmp_path / "dpr.txt",
        "The bird saw the others because they sang.",
        *("they", "The bird,the others", "The others", ""),
        "The cup broke on the mat since [MASK] fell. ",
        *("[MASK]", "The cup , The mat", "The cup ", "", ""),
    )
    first, second = read_referents(path)
    assert first == ("The bird saw the others because", "sang.", ["The bird", "the others"], 1)
    assert second == ("The cup broke on the mat since", "fell.", ["The cup", "The mat"], 0)


def test_a_block_of_other_lines_is_named(tmp_path):
    path = write(tmp_path / "bad.txt", "No pronoun here.", "they", "a,b", "a")
    with pytest.raises(ValueError, match="bad.txt.*Received: \\['No pronoun here.', 'they'"):
        read_referents(path)
    with pytest.raises(ValueError, match="with pronouns. Received: '.*nowhere'"):
        read_referents(tmp_path / "nowhere")


def test_real_files():
    pairs = read_referents(real("choice", "dpr_test.c.txt"))
    assert len(pairs) == 564 and sum(row.answer for row in pairs) == 282
    assert len(read_referents(real("choice", "wsc273.txt"))) == 273
