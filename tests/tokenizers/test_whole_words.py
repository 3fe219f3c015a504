import pytest

from keras_bert3.tokenizers.whole_words import continues_word, trim


@pytest.mark.parametrize(
    ("text", "starts_word", "expected"),
    [
        ("able", False, True),
        ("able", True, False),
        ("s", False, True),
        ("中", False, True),
        (",", False, False),
        ("$", False, False),
        ("、", False, False),
        ("\x00", False, False),
        ("...", False, True),
        ("", True, False),
    ],
)
def test_pieces_go_on_unless_marked_or_a_single_sign(text, starts_word, expected):
    assert continues_word(text, starts_word) is expected


def test_stretches_lose_outer_whitespace_unless_they_are_whitespace():
    assert trim("a  b ", 1, 5) == (3, 4)
    assert trim("a  b ", 1, 3) == (1, 3)
    assert trim("a  b ", 0, 0) == (0, 0)
