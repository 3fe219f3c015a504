import keras
import numpy as np
import pytest

from keras_bert3.tasks.token_classifier import (
    LabelledWord,
    TokenClassifier,
    as_list,
    entity_labels,
    is_words,
)
from keras_bert3.tasks.token_windows import TokenClassifierPreprocessor
from tests.layer_checks import to_numpy
from tests.tasks import toy

LABELS = ["O", "B-PET", "I-PET"]
WORDS = [["the", "cats", "sat"], ["a", "dog", "ran", "under", "trees"], ["it", "slept"]] * 2
TAGS = [["O", "B-PET", "O"], ["O", "B-PET", "O", "O", "O"], ["O", "O"]] * 2


def make(sequence_length=16, labels=LABELS, **arguments):
    preprocessor = TokenClassifierPreprocessor(toy.tokenizer(), sequence_length)
    return TokenClassifier(toy.backbone(**arguments), None, preprocessor, labels)


@pytest.fixture(scope="module")
def task():
    keras.utils.set_random_seed(3)
    task = make(num_layers=1)
    task.compile(keras.optimizers.Adam(2e-2))
    return task


def run(task, x):
    """Outputs of a few rows, by the program that `predict` compiles for batches of 32."""
    count = len(x["token_ids"])
    filled = {name: np.resize(value, (32, *value.shape[1:])) for name, value in x.items()}
    return np.asarray(task.predict_on_batch(filled))[:count]


def probabilities(task, token_ids):
    """Of the classes at every token between [CLS] and [SEP], those included."""
    powers = np.exp(run(task, task.preprocessor.pack([token_ids])).astype("float64"))[0]
    return powers[: len(token_ids) + 2] / powers[: len(token_ids) + 2].sum(-1, keepdims=True)


def test_E3_only_first_pieces_are_trained_on(task):
    batches = task.batches([["the", "cats", "sat"]], [["O", "B-PET", "I-PET"]], shuffle=False)
    x, y, weights = batches[0]
    pieces = [task.preprocessor.tokenizer.id_to_token(int(i)) for i in x["token_ids"][0, :6]]
    assert pieces == ["[CLS]", "the", "cat", "##s", "sat", "[SEP]"]
    assert y[0, :6].tolist() == [0, 0, 1, 0, 2, 0]
    assert weights[0].tolist() == [0, 1, 1, 0, 1] + [0] * 11


def test_E2_padding_changes_neither_loss_nor_metrics(task):
    short = task.evaluate(WORDS, TAGS, verbose=0, return_dict=True)
    longer = TokenClassifierPreprocessor(toy.tokenizer(), 30)
    task.preprocessor, kept = longer, task.preprocessor
    try:
        long = task.evaluate(WORDS, TAGS, verbose=0, return_dict=True)
    finally:
        task.preprocessor = kept
    assert short.keys() == long.keys() == {"loss", "accuracy"}
    for name, value in short.items():
        np.testing.assert_allclose(long[name], value, rtol=1e-5)


def test_loss_is_the_mean_over_words(task):
    tokenizer = task.preprocessor.tokenizer
    losses, hits = [], []
    for words, tags in zip(WORDS, TAGS, strict=True):
        pieces = [tokenizer(word) for word in words]
        rows = probabilities(task, sum(pieces, []))
        place = 1
        for piece, tag in zip(pieces, tags, strict=True):
            losses.append(-np.log(rows[place][LABELS.index(tag)]))
            hits.append(rows[place].argmax() == LABELS.index(tag))
            place += len(piece)
    scores = task.evaluate(WORDS, TAGS, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], np.mean(losses), rtol=1e-4)
    np.testing.assert_allclose(scores["accuracy"], np.mean(hits), rtol=1e-5)


def test_E1_every_word_of_a_long_text_has_a_prediction(task):
    generator = np.random.default_rng(0)
    words = [toy.WORDS[i] for i in generator.integers(0, len(toy.WORDS) - 1, 150)]
    words[70] = "cats" + "s" * 40  # more pieces than a row holds
    predicted = task.predict([words, [], ["it"]])
    assert [len(row) for row in predicted] == [150, 0, 1]
    assert set(predicted[0]) <= set(LABELS)
    _, _, weights = task.batches([words], [["O"] * 150], batch_size=999)[0]
    assert weights.sum() == 150


def test_each_word_is_read_where_it_has_most_context(task):
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "then", "it", "slept"] * 2
    ids = task.preprocessor.tokenizer(" ".join(words))
    expected = np.zeros((20, 3))
    first_rows, last_rows = (probabilities(task, part) for part in (ids[:14], ids[7:]))
    # Windows of 14 and 13 tokens, 0-13 and 7-19; token 10 has three on its right in the first and
    # three on its left in the second, which is the shorter one.
    expected[:11], expected[11:] = first_rows[1:12], last_rows[5:14]
    received = task.probabilities([words] * 10)[0]
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_words_and_texts_agree(task):
    text = "The  cats sat."
    found = task.predict([text] * 20)[19]
    assert all(isinstance(word, LabelledWord) for word in found)
    assert [text[word.start : word.end] for word in found] == ["The", "cats", "sat", "."]
    rows = task.probabilities([["The", "cats", "sat", "."]] * 20)[0]
    assert [word.label for word in found] == [LABELS[i] for i in rows.argmax(-1)]
    np.testing.assert_allclose([w.probability for w in found], rows.max(-1), rtol=1e-5)
    labels = [word.label for word in found]
    assert task.predict([["The", "cats", "sat", "."]] * 20) == [labels] * 20
    assert [len(row) for row in task.predict([("The", "cats"), ("it", "sat")] * 10)] == [2] * 20


def test_words_without_a_label_do_not_count(task):
    some = task.evaluate(WORDS[:1] * 6, [["O", None, "O"]] * 6, verbose=0, return_dict=True)
    rows = probabilities(task, task.preprocessor.tokenizer("the cats sat"))
    np.testing.assert_allclose(some["loss"], -np.log(rows[[1, 4], 0]).mean(), rtol=1e-4)


@pytest.mark.graph
def test_training_on_words_finds_entities_in_texts(task):
    task.fit(WORDS, TAGS, epochs=12, batch_size=6, verbose=0, validation_data=(WORDS, TAGS))
    assert task.predict(WORDS * 4) == TAGS * 4
    entities = task.find_entities(["A Dog ran", "it slept"] * 10)[:2]
    assert [[entity[:4] for entity in row] for row in entities] == [[("PET", 2, 5, "Dog")], []]
    assert 0.3 < entities[0][0].probability <= 1.0


def test_texts_are_trained_on_with_entities_by_characters(task):
    by_words = task.evaluate([["the", "cats", "sat"]] * 6, [["O", "B-PET", "I-PET"]] * 6, verbose=0)
    by_characters = task.evaluate(["the cats sat"] * 6, [[(4, 12, "PET")]] * 6, verbose=0)
    np.testing.assert_allclose(by_words, by_characters, rtol=1e-5)
    assert entity_labels([(0, 3), (4, 6), (7, 9)], [(5, 9, "A")]) == ["O", "B-A", "I-A"]
    with pytest.raises(ValueError, match=r"hold a word. Received: \(3, 4, 'A'\)"):
        entity_labels([(0, 3)], [(3, 4, "A")])


def test_tensors_give_logits(task):
    x = task.preprocessor(["the cat"] * 32)
    assert task.predict(x, verbose=0).shape == (32, 16, 3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["O", "O"]], "Expected 3 labels for text 0, one a word. Received: 2"),
        ([["O", "X", "O"]], r"Expected labels among \['O', 'B-PET', 'I-PET'\]. Received: 'X'"),
        ([[0, 3, 0]], "Received: 3 at position 1"),
        ([[0, -1, 0]], "no labels"),
        ([], "Expected labels for 1 texts. Received: for 0"),
        (None, "y=None"),
    ],
)
def test_wrong_labels_are_refused_before_any_work(task, labels, message):
    before = int(task.optimizer.iterations)
    with pytest.raises(ValueError, match=message):
        task.fit([["the", "cats", "sat"]], labels, verbose=0)
    assert int(task.optimizer.iterations) == before


@pytest.mark.parametrize(("length", "stride"), [(2, None), (16, 15), (16, 0)])
def test_rows_without_room_are_refused(length, stride):
    with pytest.raises(ValueError, match=f"sequence_length={length}, stride={stride}"):
        TokenClassifierPreprocessor(toy.tokenizer(), length, stride)


def test_without_a_preprocessor_words_are_refused():
    bare = TokenClassifier(toy.backbone(num_layers=1), num_classes=2)
    with pytest.raises(ValueError, match="preprocessor=None"):
        bare.predict([["the", "cat"]])
    assert bare.labels is None and not bare.backbone.pooler.trainable


def test_what_counts_as_words():
    assert is_words([["a"], []]) and is_words([("a", "b")]) and is_words((["a"], ["b"]))
    assert is_words(as_list(np.array([["a", "b"], ["c", "d"]])))
    assert not is_words("ab") and not is_words(["ab"]) and not is_words([])
    assert not is_words({"token_ids": 1}) and not is_words([[1, 2]])


def test_a_preset_gives_the_same_task_back(tmp_path, task):
    task.save_to_preset(tmp_path / "preset")
    twin = TokenClassifier.from_preset(tmp_path / "preset")
    assert twin.labels == LABELS and twin.dropout == task.dropout
    assert twin.preprocessor.get_config() == task.preprocessor.get_config()
    for first, second in zip(task.weights, twin.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))
