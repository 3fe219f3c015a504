import numpy as np
import pytest

from keras_bert3.tasks.question_windows import ExtractiveQAPreprocessor, targets, token_span
from tests.tasks import toy


def make(sequence_length=16, stride=4, max_query_length=4):
    return ExtractiveQAPreprocessor(toy.tokenizer(), sequence_length, stride, max_query_length)


def test_Q1_a_question_leaves_room_for_its_text():
    for length in (64, 16):
        with pytest.raises(ValueError, match=f"sequence_length={length}, max_query_length=64"):
            ExtractiveQAPreprocessor(toy.tokenizer(), length)
    preprocessor = make(sequence_length=8, stride=1)
    questions = preprocessor.encode(["the cat " * 64], ["it sat"])
    windows = preprocessor.windows(questions)
    assert [window.token_ids.tolist() for window in windows] == [[15], [8]]
    assert preprocessor.pack_windows(windows)["token_ids"].tolist() == [
        [2, 5, 6, 5, 6, 3, 15, 3],
        [2, 5, 6, 5, 6, 3, 8, 3],
    ]


def test_Q9_a_stride_that_skips_tokens_is_refused_with_its_numbers():
    message = "sequence_length=512, max_query_length=64, stride=510"
    with pytest.raises(ValueError, match=message):
        ExtractiveQAPreprocessor(toy.tokenizer(), 512, 510)
    with pytest.raises(ValueError, match="stride=0"):
        ExtractiveQAPreprocessor(toy.tokenizer(), 512, 0)


def test_defaults_are_those_of_run_squad():
    config = ExtractiveQAPreprocessor(toy.tokenizer()).get_config()
    assert config["sequence_length"] == 384
    assert config["stride"] == 128 and config["max_query_length"] == 64
    assert ExtractiveQAPreprocessor(toy.tokenizer(), 128).stride == 30


def test_Q7_targets_are_zero_where_the_answer_is_not():
    preprocessor = make()  # questions of 2 tokens leave 11
    context = "the cat sat on the mat and then it slept all day long under a tree"
    questions = preprocessor.encode(["the dog"] * 2, [context, context])
    span = context.index("it"), context.index("it") + len("it slept all")
    assert token_span(questions[0], span) == (8, 10)
    windows = preprocessor.windows(questions)
    assert [(w.question, w.first) for w in windows] == [
        *((0, 0), (0, 4), (0, 8), (1, 0), (1, 4), (1, 8)),
    ]
    found = targets(windows, [(11, 12), None])
    assert found["start"].tolist() == [0, 11, 7, 0, 0, 0]
    assert found["end"].tolist() == [0, 12, 8, 0, 0, 0]
    rows = preprocessor.pack_windows(windows)["token_ids"]
    for row in (1, 2):
        part = rows[row, found["start"][row] : found["end"][row] + 1].tolist()
        assert part == preprocessor.tokenizer("day long")
    # one that crosses the end of a window is not in it
    assert targets(windows, [(10, 11), None])["start"].tolist() == [0, 10, 6, 0, 0, 0]


def test_answers_within_words_take_the_tokens_they_touch():
    (question,) = make().encode(["it"], ["the cats  sat"])
    assert token_span(question, (4, 7)) == (1, 1)
    assert token_span(question, (7, 8)) == (2, 2)
    assert token_span(question, (5, 11)) == (1, 3)
    assert token_span(question, (8, 10)) is None


def test_segments_and_masks():
    preprocessor = make()
    x = preprocessor.pack_windows(preprocessor.windows(preprocessor.encode(["it"], ["a cat"])))
    assert x["segment_ids"][0].tolist() == [0] * 3 + [1] * 3 + [0] * 10
    assert x["padding_mask"][0].sum() == 6


def test_every_token_is_best_in_one_window():
    preprocessor = make()
    context = " ".join(toy.WORDS[:-1] * 4)
    questions = preprocessor.encode(["the dog"], [context])
    seen = np.zeros(len(questions[0].token_ids), int)
    for window in preprocessor.windows(questions):
        seen[window.first : window.first + len(window.token_ids)] += window.is_best
    assert len(seen) > 60 and (seen == 1).all()


def test_S2_nothing_is_cut_off_in_silence():
    with pytest.raises(ValueError, match="fit in 16 tokens.*text 1, which would lose 5 tokens"):
        make()(["it", "the dog"], ["a cat", "the cat sat on " * 4])
