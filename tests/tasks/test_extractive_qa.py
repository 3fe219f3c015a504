import logging

import keras
import numpy as np
import pytest

from keras_bert3.tasks.extractive_qa import ExtractiveQA
from keras_bert3.tasks.question_windows import ExtractiveQAPreprocessor
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.layer_checks import to_numpy
from tests.tasks import toy

CONTEXTS = [
    "The Cat sat on a  mat and it slept all day.",
    "A dog ran under the tree, then the dog slept on a log long and long.",
    "It sat.",
] * 2
QUESTIONS = ["the cat sat on a", "the dog slept on", "the dog"] * 2
TEXTS = ["mat", "log", None] * 2
SPANS = [
    None if text is None else (context.index(text), context.index(text) + len(text))
    for context, text in zip(CONTEXTS, TEXTS, strict=True)
]


def tokenizer():
    return WordPieceTokenizer([*toy.tokenizer().vocabulary, ".", ",", "中", "国"])


def make(null_threshold=None):
    preprocessor = ExtractiveQAPreprocessor(tokenizer(), 18, 5, 5)
    size = preprocessor.tokenizer.vocabulary_size
    backbone = toy.backbone(vocabulary_size=size, num_layers=1)
    return ExtractiveQA(backbone, preprocessor, null_threshold)


def run(task, x):
    """Outputs of a few rows, by the program that `predict` compiles for batches of 32."""
    count = len(x["token_ids"])
    filled = {name: np.resize(value, (32, *value.shape[1:])) for name, value in x.items()}
    return {k: np.asarray(v)[:count] for k, v in task.predict_on_batch(filled).items()}


@pytest.fixture(scope="module")
def task():
    keras.utils.set_random_seed(3)
    task = make()
    task.compile(keras.optimizers.Adam(2e-2))
    return task


def test_the_loss_is_the_mean_of_both_cross_entropies(task):
    x, y, weights = task.arrays(QUESTIONS, CONTEXTS, SPANS)
    assert len(y["start"]) > 6 and (y["start"] > 0).sum() >= 4
    expected = []
    for name, logits in run(task, x).items():
        logits = logits.astype("float64")
        log_sum = np.log(np.exp(logits).sum(-1))
        expected.append((log_sum - logits[np.arange(len(logits)), y[name]]).mean())
    scores = task.evaluate((QUESTIONS, CONTEXTS), SPANS, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], np.mean(expected), rtol=1e-4)
    assert {"start_accuracy", "end_accuracy"} <= set(scores)
    half = task.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    np.testing.assert_allclose(half["loss"], scores["loss"], rtol=1e-4)


def test_the_loss_does_not_depend_on_how_far_rows_are_padded(task):
    x, y, weights = task.arrays(QUESTIONS, CONTEXTS, SPANS)
    assert not x["padding_mask"].all()
    wider = {name: np.pad(value, ((0, 0), (0, 6))) for name, value in x.items()}
    losses = [
        task.evaluate(rows, y, sample_weight=weights, verbose=0, return_dict=True)["loss"]
        for rows in (x, wider)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def test_answers_are_those_of_a_plain_search_over_windows(task):
    answers = task.answer(QUESTIONS * 2, CONTEXTS * 2)
    assert answers[:6] == answers[6:]
    for question, context, answer in zip(QUESTIONS[:3], CONTEXTS, answers, strict=False):
        ids, offsets = task.preprocessor.tokenizer.encode_with_offsets(context)
        query = task.preprocessor.tokenizer(question)[:5]
        room, best = 18 - 3 - len(query), None
        firsts = [i for i in range(0, len(ids), 5) if i == 0 or i - 5 + room < len(ids)]
        for first in firsts:
            part = ids[first : first + room]
            logits = run(task, task.preprocessor.pack([query], [part]))
            start, end = logits["start"][0], logits["end"][0]
            for i in range(len(part)):
                contexts = [
                    min(first + i - f, min(f + room, len(ids)) - 1 - first - i)
                    + 0.01 * (min(f + room, len(ids)) - f)
                    for f in firsts
                    if f <= first + i < f + room
                ]
                mine = min(i, len(part) - 1 - i) + 0.01 * len(part)
                for j in range(i, len(part)):
                    score = start[len(query) + 2 + i] + end[len(query) + 2 + j]
                    if mine >= max(contexts) and (best is None or score > best[0]):
                        best = score, offsets[first + i][0], offsets[first + j][1]
        assert (answer.start, answer.end) == best[1:]
        assert answer.text == context[answer.start : answer.end]


def test_S2_an_answer_in_the_last_window_of_a_long_text_can_be_given(task):
    context = "the cat sat on a mat . " * 18 + "中"
    found = task.candidates(["the dog"], [context], count=10**6)[0]
    assert any(answer.text == "中" for answer in found)


def test_Q6_Q10_answers_are_stretches_of_the_text_as_it_stands(task):
    context = "The  CAT sat\u00a0on A Mat."
    found = task.candidates(["the cat"] * 20, context, 10**6)[19]
    for answer in found:
        assert answer.text == context[answer.start : answer.end] == answer.text.strip()
    assert {"The  CAT", "CAT sat\u00a0on", "Mat."} <= {answer.text for answer in found}
    short = task.candidates(["the cat"] * 20, context, 10**6, max_answer_length=2)[0]
    assert [answer for answer in found if len(answer.text.split()) <= 2] and len(short) == 13


def test_Q8_scripts_without_spaces(task):
    context = "中国the中国"
    texts = {(a.text, a.start) for a in task.candidates(["it"] * 20, context, 10**6)[0]}
    assert {("国", 1), ("国the中", 1), ("中国", 5)} <= texts
    x, y, _ = task.arrays(["it"], [context], [(1, 2)])
    assert (y["start"][0], y["end"][0]) == (4, 4)
    assert task.preprocessor.tokenizer.id_to_token(int(x["token_ids"][0, 4])) == "国"


@pytest.mark.graph
def test_training_finds_answers_and_their_absence(task):
    task.fit((QUESTIONS, CONTEXTS), SPANS, epochs=25, batch_size=32, verbose=0)
    task.null_threshold = 0.0
    asked = (QUESTIONS * 2, CONTEXTS * 2)
    assert [a.text for a in task.answer(*asked)] == [text or "" for text in TEXTS] * 2
    task.null_threshold = 1e9
    assert all(answer.text for answer in task.predict(asked))
    task.null_threshold = None
    one = task.answer(QUESTIONS[0], CONTEXTS[0])
    assert one.text == "mat" and 0 < one.score <= 1 and one.null_margin < 0


def test_Q5_dropped_answers_are_counted_and_not_trained_on(task, caplog):
    answers = [{"text": ["CAT"], "answer_start": [4]}, {"text": ["cow"], "answer_start": [2]}]
    with caplog.at_level(logging.WARNING):
        x, y, _ = task.arrays(["it", "it"], ["the cat sat", "a cat"], answers)
    assert len(x["token_ids"]) == 1 and (y["start"][0], y["end"][0]) == (4, 4)
    assert "Kept 1 of 2 questions. Dropped 1" in caplog.text


def test_weights_of_questions(task):
    x = (QUESTIONS, CONTEXTS)
    weights = np.array([1.0, 0, 0, 0, 0, 0])
    first = task.evaluate(x, SPANS, sample_weight=weights, verbose=0, return_dict=True)
    rows, y, _ = task.arrays(QUESTIONS[:1], CONTEXTS[:1], SPANS[:1])
    expected = []
    for name, logits in run(task, rows).items():
        log_sum = np.log(np.exp(logits.astype("float64")).sum(-1))
        expected.append(log_sum - logits[np.arange(len(logits)), y[name]])
    np.testing.assert_allclose(first["loss"], np.mean(expected), rtol=1e-4)


def test_Q11_features_are_what_they_are_declared_to_be(task):
    x, y, weights = task.arrays(QUESTIONS, CONTEXTS, SPANS)
    spec = task.preprocessor.element_spec
    assert {name: (value.shape[1:], value.dtype.name) for name, value in x.items()} == spec
    tf = pytest.importorskip("tensorflow")
    declared = {name: tf.TensorSpec(shape, dtype) for name, (shape, dtype) in spec.items()}
    data = tf.data.Dataset.from_tensor_slices((x, y, weights))
    assert data.element_spec[0] == declared
    if keras.backend.backend() == "tensorflow":
        scores = task.evaluate(data.batch(32), verbose=0, return_dict=True)
        again = task.evaluate((QUESTIONS, CONTEXTS), SPANS, verbose=0, return_dict=True)
        np.testing.assert_allclose(scores["loss"], again["loss"], rtol=1e-4)


def test_what_cannot_be_asked_is_refused(task):
    with pytest.raises(ValueError, match="a pair of lists, questions and contexts. Received: list"):
        task.predict(["the cat"])
    with pytest.raises(ValueError, match="in a tuple.*Received: a list of 2"):
        task.fit([QUESTIONS, CONTEXTS], ["cat"] * 6, verbose=0)
    with pytest.raises(ValueError, match="a text for each of 2 questions. Received: 1"):
        task.answer(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="y=None"):
        task.evaluate((QUESTIONS, CONTEXTS), verbose=0)
    with pytest.raises(ValueError, match="preprocessor=None"):
        ExtractiveQA(task.backbone).answer("a", "b")


def test_a_preset_gives_the_same_task_back(tmp_path, task):
    task.null_threshold = -1.5
    task.save_to_preset(tmp_path / "preset")
    task.null_threshold = None
    twin = ExtractiveQA.from_preset(tmp_path / "preset")
    assert twin.null_threshold == -1.5
    assert twin.preprocessor.get_config() == task.preprocessor.get_config()
    for first, second in zip(task.weights, twin.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))
