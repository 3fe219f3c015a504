import sys

import pytest

from keras_bert3.tokenizers import gpt_text


def test_marks_dashes_and_spaces_follow_the_published_rules():
    cases = {
        "a\u2014b\u2013c\u2015d": "a - b - c - d",
        "wait\u2026 it\u00b4s": "wait... it's",
        'so!!?? "x"': 'so !! ?? " x "',
        "a\\b & c.d: 'e' <f> @g #h $i %j ^k =l `m": "a\\b & c.d: 'e' <f> @g #h $i %j ^k =l `m",
        "(a)[b]{c}|d/e*f+g~h_i,j;k": "( a ) [ b ] { c } | d / e * f + g ~ h _ i , j ; k",
        "one \n\n  two\t\tthree\u00a0four \n": "one \n two three four",
    }
    for text, expected in cases.items():
        assert gpt_text.standardize(text) == expected


def test_T15_GP4_a_missing_extra_is_an_error_and_never_other_words(monkeypatch):
    for name in ("ftfy", "spacy"):
        gpt_text._published_splitter.cache_clear()
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(ImportError, match=r"keras-bert3\[gpt\]"):
                gpt_text.splitter("spacy")
            assert gpt_text.splitter("bert")("isn't it?") == ["isn", "'", "t", "it", "?"]
    gpt_text._published_splitter.cache_clear()


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="among spacy, bert. Received: 'ftfy'"):
        gpt_text.splitter("ftfy")
