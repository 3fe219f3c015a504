import numpy as np
import pytest

from keras_bert3.tasks.token_windows import TokenClassifierPreprocessor, words_in_rows
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.tasks import toy


def make(sequence_length=8, stride=None):
    return TokenClassifierPreprocessor(toy.tokenizer(), sequence_length, stride)


def test_words_and_texts_become_documents():
    preprocessor = make()
    words, text = preprocessor.encode(["The", "cats"]), preprocessor.encode("The cats.")
    assert words.token_ids.tolist() == [5, 6, 23] and words.first_tokens.tolist() == [0, 1]
    assert text.token_ids.tolist() == [5, 6, 23, 1] and text.first_tokens.tolist() == [0, 1, 3]
    assert text.spans == [(0, 3), (4, 8), (8, 9)]


def test_an_added_token_is_one_word_wherever_it_stands():
    tokenizer = WordPieceTokenizer(toy.tokenizer().vocabulary, added_tokens=["[E1]", "[/E1]"])
    marker = tokenizer.token_to_id("[E1]")
    preprocessor = TokenClassifierPreprocessor(tokenizer, 16)
    text = preprocessor.encode("the[E1] cats[/e1].")
    assert text.token_ids.tolist() == [5, marker, 6, 23, marker + 1, 1]
    assert text.spans == [(0, 3), (3, 7), (8, 12), (12, 17), (17, 18)]
    assert text.first_tokens.tolist() == [0, 1, 2, 4, 5]
    words = preprocessor.encode(["the", "[E1]", "cats[/E1]"])
    assert words.token_ids.tolist() == [5, marker, 6, 23, marker + 1]
    assert words.first_tokens.tolist() == [0, 1, 2]


def test_E1_every_word_is_in_one_windows_care():
    preprocessor = make()
    generator = np.random.default_rng(0)
    pool = [*toy.WORDS[:-1], "cats", "dogsss"]
    documents = [
        preprocessor.encode([pool[i] for i in generator.integers(0, len(pool), length)])
        for length in (0, 1, 5, 40, 150)
    ]
    windows = preprocessor.windows(documents)
    assert max(len(window.token_ids) for window in windows) == 6
    for number, document in enumerate(documents):
        cared = [w.words[w.words >= 0] for w in windows if w.document == number]
        assert np.concatenate(cared).tolist() == list(range(len(document.first_tokens)))
    assert [window.document for window in windows[:3]] == [0, 1, 2], "none without a window"


def test_words_lie_in_rows_as_their_tokens_do():
    preprocessor = make()
    windows = preprocessor.windows([preprocessor.encode(["the", "cats", "sat"])])
    x = preprocessor.pack_windows(windows)
    assert x["token_ids"].tolist() == [[2, 5, 6, 23, 8, 3, 0, 0]]
    assert words_in_rows(windows, 8).tolist() == [[-1, 0, 1, -1, 2, -1, -1, -1]]


def test_S2_nothing_is_cut_off_in_silence():
    assert make()(["the cat sat on a mat"])["padding_mask"].all()
    with pytest.raises(ValueError, match="fit in 8 tokens.*text 1, which would lose 1 tokens"):
        make()(["the", "the cat sat on a mat and"])


def test_settings_are_kept():
    preprocessor = make(20, 5)
    assert preprocessor.get_config() == {"sequence_length": 20, "stride": 5}
    assert TokenClassifierPreprocessor(toy.tokenizer()).get_config()["stride"] == 63
    assert preprocessor.element_spec["token_ids"] == ((20,), "int32")
