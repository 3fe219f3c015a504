import pytest

from keras_bert3.benchmarks.named_entities import CONLL2003, WIKIANN, WNUT17
from tests.benchmarks.files import real, write

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

Paris NNP I-NP I-LOC
London NNP I-NP B-LOC"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "eng.testa", CONLL)
    return tmp_path


def test_E4_documents_are_parted_and_their_marks_are_no_words(folder):
    sentences = CONLL2003.read(folder, "dev")
    assert sentences.inputs == [
        ["EU", "rejects", "German", "call"],
        ["Peter", "Blackburn"],
        ["Paris", "London"],
    ]
    documents = CONLL2003.read(folder, "dev", whole_documents=True)
    assert documents.inputs == [sentences.inputs[0] + sentences.inputs[1], sentences.inputs[2]]
    assert documents.labels == [sentences.labels[0] + sentences.labels[1], sentences.labels[2]]
    assert CONLL2003.score(documents, documents.labels)["accuracy"] == 1.0


def test_IOB1_is_read_as_IOB2(folder):
    assert CONLL2003.read(folder, "dev").labels == [
        ["B-ORG", "O", "B-MISC", "O"],
        ["B-PER", "I-PER"],
        ["B-LOC", "B-LOC"],
    ]
    assert CONLL2003.labels[:3] == ("O", "B-PER", "I-PER") and len(CONLL2003.labels) == 9


def test_scores_and_predictions(folder, tmp_path):
    examples = CONLL2003.read(folder, "dev")
    predicted = [["B-ORG", "O", "O", "O"], ["B-PER", "O"], ["B-LOC", "B-LOC"]]
    scores = CONLL2003.score(examples, predicted)
    assert scores["precision"] == 3 / 4 and scores["recall"] == 3 / 5
    text = CONLL2003.write_submission(tmp_path / "out", examples, predicted).read_text()
    assert text.split("\n\n")[1] == "Peter B-PER B-PER\nBlackburn I-PER O"


def test_separators_may_be_tabs_and_blank_lines_hold_them(tmp_path):
    write(tmp_path / "train.conll", "a b\tB-person\r", "c\tO", "\t", "d\tI-group\t", "", "", "e\tO")
    with pytest.raises(ValueError, match="Received: ''"):
        WNUT17.read(tmp_path, "train")
    write(tmp_path / "train.conll", "a b\tB-person\r", "c\tO", "\t", "d\tI-group", "", "", "e\tO")
    examples = WNUT17.read(tmp_path, "train")
    assert examples.inputs == [["a b", "c"], ["d"], ["e"]]
    assert examples.labels == [["B-person", "O"], ["B-group"], ["O"]]


def test_unknown_kinds_are_refused(tmp_path):
    write(tmp_path / "dev.conll", "a\tB-ANIMAL")
    with pytest.raises(ValueError, match="Expected tags among.*Received: 'B-ANIMAL'"):
        WNUT17.read(tmp_path, "dev")
    with pytest.raises(ValueError, match="Expected a split among"):
        WNUT17.read(tmp_path, "valid")


def test_real_files():
    train = WNUT17.read(real("ner", "wnut17"), "train")
    assert len(train) == 3394 and sum(map(len, train.inputs)) == 62730
    assert len(WNUT17.read(real("ner", "wnut17"), "dev")) == 1009
    assert len(WIKIANN.read(real("ner", "wikiann_en"), "dev")) == 10000
