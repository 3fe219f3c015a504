"""The documentation corpus: size, order, and what stays out."""

import sysconfig

import pytest

from keras_bert3.data import python_documentation as module
from keras_bert3.data.python_documentation import python_documentation


@pytest.fixture(scope="module")
def documents():
    return list(python_documentation())


def test_size(documents):
    words = sum(len(sentence.split()) for document in documents for sentence in document)
    assert len(documents) > 400
    assert words > 200_000


def test_every_sentence_is_prose_of_one_line(documents):
    sentences = [sentence for document in documents for sentence in document]
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)
    assert not any(">>>" in sentence or "::=" in sentence for sentence in sentences)
    assert not any("----- ---" in sentence or "=====" in sentence for sentence in sentences)


def test_topics_come_first_then_modules_by_path(documents):
    starts = [" ".join(document)[:4000] for document in documents]
    assert starts[0].startswith("Assert statements")
    heapq = [i for i, text in enumerate(starts) if "Heaps are arrays for which" in text]
    textwrap = [i for i, text in enumerate(starts) if text.startswith("Text wrapping and filling")]
    assert len(heapq) == len(textwrap) == 1
    assert 70 < heapq[0] < textwrap[0]


def test_decoration_and_code_are_left_out():
    text = (
        "A title here\n====\n\nWords that make a line\nof plain prose.\n\n>>> code(1)\n2\n\nx = 1"
    )
    split = str.splitlines
    assert module._sentences([text], split) == ["Words that make a line of plain prose."]


def test_without_sources_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(FileNotFoundError, match="standard library's source files"):
        python_documentation()
