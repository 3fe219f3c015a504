"""Sentence splitting."""

import sys

import pytest

from keras_bert3.data.sentences import sentence_splitter


def test_sentences_are_stripped_and_none_is_empty():
    split = sentence_splitter()
    assert split("One.  Two?\tThree") == ["One.", "Two?", "Three"]
    assert split("") == split(" \n ") == []


def test_other_languages():
    assert sentence_splitter("zh")("你好。再见。") == ["你好。", "再见。"]


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-bert3\[data\]'"):
        sentence_splitter()
