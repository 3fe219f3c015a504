import numpy as np
import pytest

from keras_bert3.tasks.preprocessor import Preprocessor, is_pair, is_text
from tests.tasks import toy


def test_texts_and_pairs_are_packed():
    preprocessor = Preprocessor(toy.tokenizer(), 8)
    single = preprocessor(["the cat"])
    assert single["token_ids"].tolist() == [[2, 5, 6, 3, 0, 0, 0, 0]]
    assert single["padding_mask"].tolist() == [[True] * 4 + [False] * 4]
    pair = preprocessor(["the cat"], ["sat"])
    assert pair["token_ids"].tolist() == [[2, 5, 6, 3, 8, 3, 0, 0]]
    assert pair["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("x", "text", "pair"),
    [
        ("a", True, False),
        (["a", "b"], True, False),
        (("a", "b"), True, False),
        ((["a"], ["b"]), True, True),
        (np.array(["a", "b"]), True, False),
        (np.array([1, 2]), False, False),
        ({"token_ids": np.zeros((1, 2))}, False, False),
        ([], False, False),
        (None, False, False),
    ],
)
def test_what_counts_as_text(x, text, pair):
    assert (is_text(x), is_pair(x)) == (text, pair)
