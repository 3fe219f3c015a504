import pytest

from keras_bert3.data.answers import locate_answer, locate_answers


def squad(text, start):
    return {"text": [text], "answer_start": [start]}


@pytest.mark.parametrize("space", [" ", "\u00a0", "\t "])
def test_Q4_space_around_an_answer_is_no_part_of_it(space):
    context = f"lasted{space}7.5 days long"
    located = locate_answers([context], [squad(f"{space}7.5 days ", 6)])
    (start, end) = located.spans[0]
    assert start == 6 + len(space) and context[start:end] == "7.5 days"
    assert not located.moved and not located.dropped


def test_Q5_case_may_differ_and_counts_are_kept():
    contexts = ["In Paris.", "In Paris.", "In Paris.", "a Paris or paris", "x"]
    answers = [squad("paris", 3), squad("Paris", 1), squad("Rome", 3), squad("paris", 0), None]
    located = locate_answers(contexts, answers)
    assert located.spans == [(3, 8), (3, 8), None, (11, 16), None]
    assert located.moved == (1, 3) and located.dropped == (2,)


def test_the_nearest_occurrence_is_taken():
    assert locate_answer("ab ab ab", "ab", 4) == (3, 5)
    assert locate_answer("ab ab ab", "ab", 99) == (6, 8)
    assert locate_answer("ab", " ", 0) is None
    assert locate_answer("\u0130 Paris", "paris", 2) == (2, 7), "lower() makes this text longer"
    assert locate_answer("ab     ab", "     ab", 2) == (7, 9), "the one meant, not the nearer one"


def test_pairs_are_taken_as_they_are_and_nothing_as_no_answer():
    located = locate_answers(["abc"] * 3, [(1, 3), None, {"text": [], "answer_start": []}])
    assert located.spans == [(1, 3), None, None] and not located.dropped


@pytest.mark.parametrize("pair", [(2, 2), (-1, 2), (0, 4), (1,), "ab"])
def test_pairs_outside_the_text_are_refused(pair):
    with pytest.raises(ValueError, match="Expected answer 0 as .start, end. within its text of 3"):
        locate_answers(["abc"], [pair])


def test_one_answer_a_text():
    with pytest.raises(ValueError, match="Expected 1 answers. Received: 2"):
        locate_answers(["abc"], [None, None])
