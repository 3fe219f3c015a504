import keras
import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.objectives.input_transformations import auxiliary_lm_targets
from keras_bert3.tasks.gpt_fine_tuning import add_task_tokens
from keras_bert3.tasks.gpt_preprocessors import with_task_tokens
from keras_bert3.tokenizers.byte_pair import TASK_TOKENS
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from tests.layer_checks import to_numpy

TEXTS = ["the cat sat on the mat", "the dog sat", "a cat slept all day"]
PLAIN = train_byte_pair(TEXTS * 2, 30, "bert")
TOKENIZER = with_task_tokens(PLAIN)
START, DELIMITER, CLASSIFY = range(PLAIN.vocabulary_size, PLAIN.vocabulary_size + 3)
SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32, "dropout": 0.0}
WIDTH, LENGTH = 16, 24  # one length: JAX compiles every operation for each


def backbone(tokenizer=TOKENIZER, scale=8.0):
    made = kb.GPTBackbone(tokenizer.vocabulary_size, max_sequence_length=24, **SIZE)
    for weight in made.trainable_weights:
        if len(weight.shape) > 1:  # so that every token counts in every vector
            weight.assign(weight.value * scale)
    return made


@pytest.fixture(scope="module")
def classifier():
    return kb.GPTTextClassifier(backbone(), 2, kb.GPTPreprocessor(TOKENIZER, LENGTH))


@pytest.fixture(scope="module")
def similarity():
    return kb.GPTSimilarity(backbone(), 1, kb.GPTSimilarityPreprocessor(TOKENIZER, LENGTH))


@pytest.fixture(scope="module")
def chooser():
    return kb.GPTMultipleChoice(backbone(), kb.GPTMultipleChoicePreprocessor(TOKENIZER, LENGTH))


def last_layers(task, rows):
    """The vectors at the classify tokens of rows, padded on the right, four at a time."""
    assert all(ids[-1] == CLASSIFY and CLASSIFY not in ids[:-1] for ids in rows)
    ids = np.array([[*row, *[0] * (LENGTH - len(row))] for row in [*rows, *rows[:1] * 4][:4]])
    mask = np.arange(LENGTH) < np.array([len(row) for row in [*rows, *rows[:1] * 4][:4]])[:, None]
    inputs = {"token_ids": ids.astype("int32"), "padding_mask": mask}
    hidden = to_numpy(task.backbone(inputs)["sequence_output"])
    return [hidden[i, len(row) - 1] for i, row in enumerate(rows)]


def framed(*parts):
    """Ids of `start a delimiter b classify`, or of `start a classify`."""
    ids = [[DELIMITER, *PLAIN(part)] for part in parts]
    return [START, *[i for part in ids for i in part][1:], CLASSIFY]


def test_special_tokens_follow_the_vocabulary():
    assert TOKENIZER.vocabulary[:-3] == PLAIN.vocabulary
    assert TOKENIZER.vocabulary[-3:] == list(TASK_TOKENS)
    assert with_task_tokens(TOKENIZER) is TOKENIZER


def test_GP2_texts_and_pairs_become_rows_and_the_mask_tells_padding(classifier):
    one = classifier.preprocess(TEXTS)
    for row, mask, text in zip(one["token_ids"], one["padding_mask"], TEXTS, strict=True):
        assert row[mask].tolist() == framed(text)
        assert (row[~mask] == TOKENIZER.pad_id).all()
    pair = classifier.preprocess((TEXTS[:2], TEXTS[1:]))
    assert pair["token_ids"][0][pair["padding_mask"][0]].tolist() == framed(TEXTS[0], TEXTS[1])
    short = kb.GPTPreprocessor(TOKENIZER, 8)([TEXTS[0] * 3, "a"])["token_ids"]
    assert short.shape == (2, 8) and short[0, -1] == CLASSIFY
    rounded = kb.GPTPreprocessor(TOKENIZER, None, 20, 8)(["a"])["token_ids"]
    assert rounded.shape == (1, 8)


def test_GP1_the_classifier_reads_the_classify_token_wherever_padding_is(classifier):
    logits = to_numpy(classifier(classifier.preprocess(TEXTS)))
    kernel, bias = (to_numpy(w.value) for w in classifier.classifier.weights)
    expected = np.array(last_layers(classifier, list(map(framed, TEXTS)))) @ kernel + bias
    assert np.std(expected) > 0.01
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    right = classifier.preprocess(TEXTS)
    left = {name: value.copy() for name, value in right.items()}
    for i, text in enumerate(TEXTS):
        for value in left.values():
            value[i] = np.roll(value[i], LENGTH - len(framed(text)))
    assert left["padding_mask"][:, -1].all() and not left["padding_mask"][:, 0].any()
    np.testing.assert_allclose(to_numpy(classifier(left)), logits, atol=1e-5)
    alone = {name: value[1:2, : len(framed(TEXTS[1]))] for name, value in right.items()}
    assert alone["padding_mask"].all()
    np.testing.assert_allclose(to_numpy(classifier(alone)), logits[1:2], atol=1e-5)


def negative_log_likelihoods(logits, labels):
    logits = logits.astype("float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, np.asarray(labels)[..., None], -1)[..., 0]


@pytest.mark.graph
def test_the_language_model_counts_half_in_training_and_not_in_evaluation(classifier):
    classifier.compile(optimizer=keras.optimizers.SGD(0.0))
    labels = np.array([0, 1, 1])
    x = classifier.preprocess(TEXTS)
    wanted = negative_log_likelihoods(to_numpy(classifier(x)), labels).mean()
    outputs = classifier.backbone(x, token_table=True)
    hidden, table = (to_numpy(outputs[name]) for name in ("sequence_output", "token_table"))
    following, weights = auxiliary_lm_targets(x["token_ids"], x["padding_mask"])
    language = (negative_log_likelihoods(hidden @ table.T, following) * weights).sum()
    scores = classifier.evaluate(x, labels, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], wanted, rtol=1e-5)
    history = classifier.fit(TEXTS, labels, batch_size=3, verbose=0).history
    assert language > 1.0
    np.testing.assert_allclose(history["loss"][0], wanted + 0.5 * language, rtol=1e-5)
    assert classifier.get_config()["auxiliary_lm_weight"] == 0.5


def test_similarity_adds_both_orders_before_the_linear_layer(similarity):
    first, second = TEXTS[:1], TEXTS[2:]
    x = similarity.preprocess((first, second))
    assert x["token_ids"].shape[:2] == (1, 2)
    scores = to_numpy(similarity(x))
    kernel, bias = (to_numpy(w.value) for w in similarity.classifier.weights)
    orders = [framed(first[0], second[0]), framed(second[0], first[0])]
    added = sum(last_layers(similarity, orders))
    np.testing.assert_allclose(scores, [added @ kernel + bias], atol=1e-5)
    swapped = to_numpy(similarity(similarity.preprocess((second, first))))
    np.testing.assert_allclose(swapped, scores, atol=1e-6)
    with pytest.raises(ValueError, match="pairs of texts to compare. Received: single"):
        similarity.predict(TEXTS)
    with pytest.raises(ValueError, match=r"\(batch, 2 orders, length\).*\(1, 9\)"):
        similarity({name: value[:, 0, :9] for name, value in x.items()})


def test_GP3_one_unit_scores_every_choice(chooser):
    contexts = ["the cat", ("the dog sat", "on the mat")]
    choices = [["sat", "slept all day"], ["a cat", "the dog"]]
    assert chooser.multiple_choice_head.kernel.shape == (WIDTH, 1)
    x = chooser.preprocess((contexts, choices))
    scores = to_numpy(chooser(x))
    assert scores.shape == (2, 2)
    kernel, bias = (to_numpy(w.value) for w in chooser.multiple_choice_head.weights)
    before = [PLAIN("the cat"), PLAIN("the dog sat") + PLAIN("on the mat")]
    rows = [
        [START, *ids, DELIMITER, *PLAIN(answer), CLASSIFY]
        for ids, answers in zip(before, choices, strict=True)
        for answer in answers
    ]
    wanted = np.array(last_layers(chooser, rows)) @ kernel + bias
    np.testing.assert_allclose(scores, wanted.reshape(2, 2), atol=1e-5)
    with pytest.raises(ValueError, match=r"as many choices.*Received: \[1, 2\]"):
        chooser.preprocess((contexts, [["a"], ["a", "b"]]))


def test_a_long_document_is_cut_and_its_question_kept():
    preprocessor = kb.GPTMultipleChoicePreprocessor(TOKENIZER, 16)
    ids = preprocessor.frame([("the cat " * 9, "the dog")], [["a", "sat"]])["token_ids"][0]
    question, places = PLAIN("the dog"), ids[0].tolist()
    end = places.index(DELIMITER)
    assert places[end - len(question) : end] == question and ids.shape == (2, 16)


def test_choices_share_the_dropout_of_what_is_read():
    task = kb.GPTMultipleChoice(backbone(), dropout=0.5)
    ids = np.tile(np.resize(framed(TEXTS[0]), LENGTH), (6, 3, 1)).astype("int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    scores = to_numpy(task(inputs, training=True))
    np.testing.assert_allclose(scores, scores[:, :1].repeat(3, 1), atol=1e-6)
    assert np.unique(scores[:, 0].round(4)).size > 2


def test_pretrained_presets_gain_the_special_tokens(tmp_path):
    pretrained = kb.CausalLM(backbone(PLAIN, 1.0), kb.CausalLMPreprocessor(PLAIN))
    pretrained.save_to_preset(tmp_path / "lm")
    task = kb.GPTTextClassifier.from_preset(tmp_path / "lm", labels=["no", "yes"])
    size = PLAIN.vocabulary_size
    table = to_numpy(task.backbone.token_embeddings.value)
    assert len(table) == size + 3
    np.testing.assert_array_equal(
        table[:size], to_numpy(pretrained.backbone.token_embeddings.value)
    )
    assert 0.01 < table[size:].std() < 0.03 and np.abs(table[size:]).max() < 0.1
    assert task.preprocessor.tokenizer.get_config() == TOKENIZER.get_config()
    assert task.preprocessor.longest == 24 and add_task_tokens(task) is task
    task.save_to_preset(tmp_path / "classifier")
    again = kb.GPTTextClassifier.from_preset(tmp_path / "classifier")
    assert (
        again.preprocess(TEXTS)["token_ids"].tolist()
        == task.preprocess(TEXTS)["token_ids"].tolist()
    )
    for ours, stored in zip(task.trainable_weights, again.trainable_weights, strict=True):
        np.testing.assert_array_equal(to_numpy(stored.value), to_numpy(ours.value))
    assert (again.labels, again.auxiliary_lm_weight) == (["no", "yes"], 0.5)
