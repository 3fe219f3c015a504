import numpy as np
import pytest

from keras_bert3.metrics.entities import Chunk, chunks, entity_scores, iob2, tags_of


class ConllEval:
    """The counting of CoNLL's conlleval: one pass over all words, with what is open remembered.

    A chunk in gold and guess is right if both begin and end together and never differ in kind.
    """

    def __init__(self):
        self.right = self.golden = self.guessed = 0

    @staticmethod
    def begins(previous, kind_before, tag, kind):
        pairs = ("BB", "IB", "OB", "OI")
        return previous + tag in pairs or (tag != "O" and kind_before != kind)

    @staticmethod
    def ends(previous, kind_before, tag, kind):
        pairs = ("BB", "BO", "IB", "IO")
        return previous + tag in pairs or (previous != "O" and kind_before != kind)

    def add(self, gold, guess):
        is_open = False
        gold_before = guess_before = ("O", "")
        rows = [*zip(gold, guess, strict=True), ("O", "O")]
        for tag, guessed_tag in rows:
            now, guess_now = self.parts(tag), self.parts(guessed_tag)
            ends = self.ends(*gold_before, *now), self.ends(*guess_before, *guess_now)
            if is_open:
                if all(ends) and gold_before[1] == guess_before[1]:
                    is_open = False
                    self.right += 1
                elif ends[0] != ends[1] or now[1] != guess_now[1]:
                    is_open = False
            begins = self.begins(*gold_before, *now), self.begins(*guess_before, *guess_now)
            if all(begins) and now[1] == guess_now[1]:
                is_open = True
            self.golden += begins[0]
            self.guessed += begins[1]
            gold_before, guess_before = now, guess_now

    @staticmethod
    def parts(tag):
        return (tag[0], tag[2:]) if tag != "O" else ("O", "")


TAGS = ["O", "O", "B-A", "I-A", "B-B", "I-B"]


@pytest.mark.parametrize("tags", [TAGS, ["O", "I-A", "I-B", "B-A"]])
def test_scores_are_those_of_conlleval(tags):
    generator = np.random.default_rng(len(tags))
    oracle, gold, guess = ConllEval(), [], []
    for length in generator.integers(1, 15, 200):
        row = [tags[i] for i in generator.integers(0, len(tags), length)]
        changed = [t if generator.random() < 0.8 else tags[0] for t in row]
        other = [tags[i] for i in generator.integers(0, len(tags), length)]
        noisy = [a if generator.random() < 0.8 else b for a, b in zip(changed, other, strict=True)]
        gold.append(row)
        guess.append(noisy)
        oracle.add(row, noisy)
    scores = entity_scores(gold, guess)
    assert oracle.right > 50
    assert scores["precision"] == oracle.right / oracle.guessed
    assert scores["recall"] == oracle.right / oracle.golden
    precision, recall = scores["precision"], scores["recall"]
    assert abs(scores["f1"] - 2 * precision * recall / (precision + recall)) < 1e-12
    same = sum(a == b for x, y in zip(gold, guess, strict=True) for a, b in zip(x, y, strict=True))
    assert scores["accuracy"] == same / sum(map(len, gold))


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-A I-A O I-A", [("A", 0, 2), ("A", 3, 4)]),
        ("I-A B-A I-B", [("A", 0, 1), ("A", 1, 2), ("B", 2, 3)]),
        ("B-A I-A B-A O", [("A", 0, 2), ("A", 2, 3)]),
        ("S-A B-A E-A I-A", [("A", 0, 1), ("A", 1, 3), ("A", 3, 4)]),
        ("O O", []),
    ],
)
def test_chunks(tags, expected):
    assert chunks(tags.split()) == [Chunk(*row) for row in expected]


def test_iob1_becomes_iob2():
    assert iob2("I-A I-A B-A O I-B".split()) == "B-A I-A B-A O B-B".split()
    assert tags_of([Chunk("A", 1, 3)], 4) == ["O", "B-A", "I-A", "O"]


def test_kinds_are_scored_apart():
    scores = entity_scores([["B-A", "O", "B-B"]], [["B-A", "B-A", "I-B"]])
    assert scores["precision/A"] == 0.5 and scores["recall/A"] == 1.0
    assert scores["f1/B"] == 1.0
    nothing = entity_scores([["O"]], [["O"]])
    assert nothing["f1"] == 0.0 and nothing["accuracy"] == 1.0


@pytest.mark.parametrize("tag", ["X", "B", "B-", "-A", "PER", ""])
def test_tags_of_another_kind_are_refused(tag):
    with pytest.raises(ValueError, match=f"Received: '{tag}'"):
        chunks([tag])


def test_sentences_must_have_equal_lengths():
    with pytest.raises(ValueError, match="Expected 2 tags in sentence 1. Received: 1"):
        entity_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="tags for 1 sentences. Received: for 0"):
        entity_scores([["O"]], [])
