"""Rows of real tasks with the released vocabulary: the ids that docs/gpt.md prints."""

import os
from pathlib import Path

import pytest

from keras_bert3.benchmarks import glue, multiple_choice
from keras_bert3.tasks import gpt_preprocessors as gpt
from keras_bert3.tokenizers.byte_pair import TASK_TOKENS, BytePairTokenizer

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "-"))
DOCS = (Path(__file__).parents[2] / "docs" / "gpt.md").read_text("utf-8")
START, DELIMITER, CLASSIFY = 40478, 40479, 40480

real_data = pytest.mark.skipif(not DATA.is_dir(), reason="KERAS_BERT3_DATA is not set")


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("spacy")
    return BytePairTokenizer.load(DATA / "vocab" / "gpt1", special_tokens=TASK_TOKENS)


def rows_of(packed):
    """The real tokens of every row."""
    length = packed["token_ids"].shape[-1]
    ids, masks = (packed[n].reshape(-1, length) for n in ("token_ids", "padding_mask"))
    return [row[mask].tolist() for row, mask in zip(ids, masks, strict=True)]


def printed(ids):
    """Whether the documentation prints these ids, in lines of any length."""
    return ", ".join(map(str, ids)) in " ".join(DOCS.split())


@real_data
def test_classification_of_SST2(tokenizer):
    text = glue.SST2.read(DATA / "glue/SST-2", "dev").inputs[0]
    (ids,) = rows_of(gpt.GPTPreprocessor(tokenizer)([text]))
    assert ids == [40478, 507, 535, 246, 7403, 488, 2528, 19759, 4867, 239, 40480]
    assert printed(ids)


@real_data
def test_entailment_of_RTE(tokenizer):
    premises, hypotheses = glue.RTE.read(DATA / "glue/RTE", "dev").columns
    (ids,) = rows_of(gpt.GPTPreprocessor(tokenizer)(premises[:1], hypotheses[:1]))
    assert ids[:6] == [START, 9121, 24036, 240, 481, 12177]
    assert ids[-9:] == [239, DELIMITER, 9488, 24036, 558, 531, 4437, 239, CLASSIFY]
    assert len(ids) == 36 and printed(ids)


@real_data
def test_similarity_of_STSB_both_ways_round(tokenizer):
    first, second = glue.STSB.read(DATA / "glue/STS-B", "dev").columns
    rows = rows_of(gpt.GPTSimilarityPreprocessor(tokenizer)(first[:1], second[:1]))
    one, two = [246, 762, 556], [246, 762, 2311]
    rest = [246, 1162, 4340, 544, 4542, 239]
    assert rows == [
        [START, *one, *rest, DELIMITER, *two, *rest, CLASSIFY],
        [START, *two, *rest, DELIMITER, *one, *rest, CLASSIFY],
    ]
    assert all(map(printed, rows))


@real_data
def test_multiple_choice_of_COPA(tokenizer):
    row = multiple_choice.COPA.read_items(DATA / "choice/copa-dev.xml", "dev")[0]
    frame = gpt.GPTMultipleChoicePreprocessor(tokenizer).frame
    rows = rows_of(frame([row.context], [row.choices]))
    premise = [START, 547, 956, 3517, 246, 3265, 715, 481, 3614, 239, DELIMITER]
    assert rows == [
        [*premise, 481, 2104, 509, 3665, 239, CLASSIFY],
        [*premise, 481, 3614, 509, 1892, 239, CLASSIFY],
    ]
    assert all(map(printed, rows))


@real_data
def test_question_answering_of_DREAM(tokenizer):
    row = multiple_choice.DREAM.read_items(DATA / "choice/dream", "dev")[0]
    frame = gpt.GPTMultipleChoicePreprocessor(tokenizer).frame
    rows = rows_of(frame([(row.context, row.question)], [row.choices]))
    assert len(rows) == 3 and printed(rows[row.answer])
    question = [599, 535, 481, 1157, 1419, 797, 485, 587, 257]
    for ids, answer in zip(rows, row.choices, strict=True):
        end = ids.index(DELIMITER)
        assert ids[:3] == [START, 258, 271] and ids[end - 9 : end] == question
        assert ids[end + 1 :] == [*tokenizer(answer), CLASSIFY]
    assert rows[1][-6:] == [485, 1796, 513, 1890, 239, CLASSIFY]
