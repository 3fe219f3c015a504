import unicodedata

import pytest

from keras_bert3.tokenizers import basic_tokenization
from tests.tokenizers.word_piece_oracle import basic_words


def words_of(text, lowercase, strip_accents=None, split_chinese_characters=True):
    strip_accents = lowercase if strip_accents is None else strip_accents
    text = basic_tokenization.settle_final_sigmas(text) if lowercase else text
    normalized = basic_tokenization.normalizer(lowercase, strip_accents).normalize_str(text)
    cut = basic_tokenization.pre_tokenizer(split_chinese_characters)
    return [word for word, _ in cut.pre_tokenize_str(normalized)]


def probed_code_points():
    """All code points but letters, unassigned and private ones, of which every 97th; all edges."""
    previous = ""
    for point in range(0x110000):
        category = unicodedata.category(chr(point))
        plentiful = category in ("Lo", "Cn", "Co")
        if category != "Cs" and (not plentiful or point % 97 == 0 or category != previous):
            yield point
        previous = category


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_class_of_character_follows_the_rules_alone_and_inside_a_word(lowercase):
    normalizer = basic_tokenization.normalizer(lowercase, lowercase)
    pre_tokenizer = basic_tokenization.pre_tokenizer(True)
    differing = []
    count = 0
    for point in probed_code_points():
        count += 1
        for text in (chr(point), f"a{chr(point)}b"):
            settled = basic_tokenization.settle_final_sigmas(text) if lowercase else text
            normalized = normalizer.normalize_str(settled)
            words = [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]
            if words != basic_words(text, lowercase):
                differing.append(point)
    assert count > 20_000
    assigned = [hex(point) for point in differing if unicodedata.category(chr(point)) != "Cn"]
    assert assigned == []
    assert lowercase or not differing


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_each_setting_follows_the_rules(lowercase, strip_accents, split_chinese):
    text = "Ärger,\u00a0NAÏVE が中国x İstanbul ΟΔΟΣ e\u0301\u0323 \ufa0e豈 $5+`x`\x07"
    expected = basic_words(text, lowercase, strip_accents, split_chinese)
    assert words_of(text, lowercase, strip_accents, split_chinese) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ΟΔΟΣ",
        "ΟΔΟΣ ΟΔΟΣ.",
        "Σ",
        "ΣΣ",
        "ΑΣΑ",
        "ΑΣ\x07Α",
        "ΑΣ\u00ad",
        "ΑΣ\ufffdΑ",
        "İΣ",
        "中Σ",
        "ΑΣ'Σ",
        "Α\u0301Σ\u0301",
        "ΑΣ.Α ΣΑΣ",
    ],
)
def test_final_sigma_as_in_python(text):
    settled = basic_tokenization.settle_final_sigmas(text)
    assert len(settled) == len(text)
    assert words_of(text, True) == basic_words(text, True)


def test_final_sigma_by_hand():
    assert basic_tokenization.settle_final_sigmas("ΟΔΟΣ ΣΑΣ") == "ΟΔΟς ΣΑς"
    assert basic_tokenization.settle_final_sigmas("no sigma") == "no sigma"


def test_newer_decompositions_are_few():
    assert len(basic_tokenization._newer_decompositions()) < 40
