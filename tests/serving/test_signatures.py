"""What every task answers to strings, inside TensorFlow, equals its Python path."""

import keras
import numpy as np
import pytest

from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.tasks import toy

tf = pytest.importorskip("tensorflow", exc_type=ImportError)
if keras.backend.backend() != "tensorflow":
    pytest.skip("the graph is TensorFlow's, whatever the backend", allow_module_level=True)

from keras_bert3.serving import symbol_table  # noqa: E402
from keras_bert3.serving.operations import check_operations, operations_of  # noqa: E402
from keras_bert3.serving.signatures import Signatures  # noqa: E402

TABLES = {}


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    """Models in Python step through; tables of code points, which take a second, are shared."""
    build = symbol_table.build

    def build_once(points, symbols, other):
        key = (id(points), *symbols)
        if key not in TABLES:
            TABLES[key] = build(points, symbols, other)
        return TABLES[key]

    monkeypatch.setattr(symbol_table, "build", build_once)
    monkeypatch.setattr(keras.Model, "run_eagerly", property(lambda _: True, lambda *_: None))


def made(task, **arguments):
    functions = Signatures(task, **arguments).functions()
    for function in functions.values():
        check_operations(operations_of(function.graph.as_graph_def()))
    return functions


def backbone(**arguments):
    return toy.backbone(num_layers=1, initializer_range=0.5, **arguments)


def strings(values):
    return tf.constant(values, tf.string)


def test_masks_are_filled_as_in_python():
    task = toy.masked_lm(num_layers=1, initializer_range=0.5)
    function = made(task)["serving_default"]
    texts = ["the [MASK] sat", "[MASK] dog [MASK] on the mat", "a cat[MASK]"]
    found = {name: value.numpy() for name, value in function(text=strings(texts)).items()}
    assert found["tokens"].shape == (3, 2, 5)
    for row, expected in enumerate(task.fill_mask(texts)):
        for mask, pairs in enumerate(expected):
            assert found["tokens"][row, mask].tolist() == [token.encode() for token, _ in pairs]
            np.testing.assert_allclose(
                found["probabilities"][row, mask], [p for _, p in pairs], atol=1e-5
            )
    assert found["tokens"][0, 1].tolist() == [b""] * 5 and not found["probabilities"][0, 1].any()
    for text in ("the cat", "the " * 20 + "[MASK]"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected at least one"):
            function(text=strings([text]))


def test_choices_are_made_as_in_python():
    from keras_bert3.tasks.multiple_choice import MultipleChoice

    task = MultipleChoice(backbone(), Preprocessor(toy.tokenizer(), 16))
    contexts = ["the cat sat", "a dog ran all day long under the tree " * 3]
    choices = [["on the mat", "log", "it slept"], ["and then", "a " * 30, "the"]]
    found = Signatures(task).texts(strings(contexts), choices=strings(choices))
    expected = task.predict((contexts, choices), verbose=0)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert found["choice"].numpy().tolist() == task.choose((contexts, choices)).tolist()


def test_V9_questions_are_answered_as_in_python_window_by_window():
    from keras_bert3.tasks.extractive_qa import ExtractiveQA
    from keras_bert3.tasks.question_windows import ExtractiveQAPreprocessor

    preprocessor = ExtractiveQAPreprocessor(toy.tokenizer(), 24, 5, 6)
    task = ExtractiveQA(backbone(), preprocessor, 0.5)
    rng = np.random.default_rng(3)
    words = [*toy.WORDS[:-1], "Thé", "中", "xyz", "\u200b", "  ", "cats", "!"]
    texts = [" ".join(rng.choice(words, size)) for size in (0, 1, 5, 14, 15, 16, 20, 45, 70, 3)]
    questions = [" ".join(rng.choice(words, size)) for size in (3, 0, 9, 2, 1, 6, 30, 4, 2, 5)]
    functions = made(task)
    assert sorted(functions["tokens"].structured_outputs) == ["end", "start"]
    found = functions["serving_default"](question=strings(questions), context=strings(texts))
    assert_same_answers(found, task.answer(questions, texts))
    assert b"" in found["text"].numpy()[1:].tolist()
    task.null_threshold = None
    found = Signatures(task).answer(strings(questions), strings(texts))
    assert_same_answers(found, task.answer(questions, texts))
    assert len(set(found["text"].numpy().tolist())) > 5


def assert_same_answers(found, expected):
    found = {name: value.numpy() for name, value in found.items()}
    for row, answer in enumerate(expected):
        assert found["text"][row].decode() == answer.text
        assert (found["start"][row], found["end"][row]) == (answer.start, answer.end)
        assert abs(found["score"][row] - answer.score) < 1e-5
        if np.isfinite(answer.null_margin):
            assert abs(found["null_margin"][row] - answer.null_margin) < 1e-4


def test_vectors_numbers_and_word_labels():
    from keras_bert3.tasks.text_classifier import TextClassifier
    from keras_bert3.tasks.text_embedder import TextEmbedder
    from keras_bert3.tasks.token_classifier import TokenClassifier

    body = backbone()
    texts = ["the cat", "a dog ran under the tree"]
    for task, name in (
        (TextEmbedder(body, Preprocessor(toy.tokenizer()), normalize=True), "embedding"),
        (TextClassifier(body, 1, Preprocessor(toy.tokenizer())), "score"),
    ):
        found = Signatures(task).texts(strings(texts))
        assert list(found) == [name]
        expected = task.predict(texts, verbose=0).reshape(found[name].shape)
        np.testing.assert_allclose(found[name], expected, atol=1e-5)
    task = TokenClassifier(body, labels=["O", "B-PER", "I-PER"])
    functions = made(task)
    assert sorted(functions) == ["serving_default", "tokens"]
    ids = tf.constant([[2, 5, 6, 3], [2, 7, 3, 0]])
    found = functions["tokens"](
        token_ids=ids, segment_ids=tf.zeros_like(ids), lengths=tf.constant([4, 3])
    )
    scores = task({"token_ids": ids, "padding_mask": tf.constant([[1] * 4, [1, 1, 1, 0]])})
    np.testing.assert_allclose(found["scores"], scores, atol=1e-5)
    names = np.array([b"O", b"B-PER", b"I-PER"])
    assert found["label"].numpy().tolist() == names[np.argmax(scores, -1)].tolist()


def test_words_are_labelled_as_in_python_window_by_window():
    from keras_bert3.tasks.token_classifier import TokenClassifier
    from keras_bert3.tasks.token_windows import TokenClassifierPreprocessor

    preprocessor = TokenClassifierPreprocessor(toy.tokenizer(), 12, 4)
    task = TokenClassifier(backbone(), preprocessor=preprocessor, labels=["O", "B-PER", "I-PER"])
    rng = np.random.default_rng(5)
    words = [*toy.WORDS, "Thé", "中", "xyz", "\u200b", "  ", "cats,", "!", "\u0301", "a\u00adb"]
    texts = [" ".join(rng.choice(words, size)) for size in (0, 1, 5, 10, 11, 30, 70, 3)]
    texts += ["", " ", "\u200b", " the", "\u0301 \u200b", "中\u0301文", "a\x00cat", "the "]
    found = made(task)["serving_default"](text=strings(texts))
    found = {name: value.numpy() for name, value in found.items()}
    expected = task.label_words(texts)
    assert found["word"].shape == (len(texts), max(map(len, expected)))
    for row, (text, labelled) in enumerate(zip(texts, expected, strict=True)):
        count = len(labelled)
        columns = (found[name][row] for name in ("word", "label", "start", "end"))
        assert [
            (word.decode(), label.decode(), start, end)
            for word, label, start, end in zip(*columns, strict=True)
        ] == [(text[w.start : w.end], w.label, w.start, w.end) for w in labelled] + [
            ("", "", 0, 0)
        ] * (found["word"].shape[1] - count)
        given = [w.probability for w in labelled]
        np.testing.assert_allclose(found["probability"][row][:count], given, atol=1e-5)
    assert len({word.label for row in expected for word in row}) > 1


def test_byte_level_texts_are_answered_as_in_python():
    from keras_bert3.tasks.extractive_qa import ExtractiveQA
    from keras_bert3.tasks.question_windows import ExtractiveQAPreprocessor
    from tests.tokenizers.test_byte_level_byte_pair import VOCABULARY, fuzz, tokenizer

    preprocessor = ExtractiveQAPreprocessor(tokenizer(), 24, 5, 6)
    size = len(VOCABULARY)
    task = ExtractiveQA(backbone(vocabulary_size=size), preprocessor, 0.5)
    texts, questions = ["", "lower and lower", *fuzz(20, 2)], [*fuzz(21, 3), ""]
    found = Signatures(task).answer(strings(questions), strings(texts))
    assert_same_answers(found, task.answer(questions, texts))


def gpt_backbone(size, **arguments):
    from keras_bert3.backbones.gpt import GPTBackbone

    sizes = {**toy.SIZE, "num_layers": 1, "initializer_range": 0.5, **arguments}
    return GPTBackbone(vocabulary_size=size, **sizes)


def gpt_tokenizer(**settings):
    from tests.tokenizers.test_byte_pair import tokenizer

    return tokenizer(**settings)


def test_language_models_continue_strings_and_tokens():
    from keras_bert3.tasks.causal_lm import CausalLM, CausalLMPreprocessor

    tokenizer = gpt_tokenizer()
    size = tokenizer.vocabulary_size
    task = CausalLM(gpt_backbone(size), CausalLMPreprocessor(tokenizer, 8))
    functions = made(task)
    assert sorted(functions) == ["embed", "serving_default", "tokens"]
    texts = ["lower low", "Wé", "low er lower slow lower low lower low"]
    found = functions["serving_default"](text=strings(texts))
    for row, text in enumerate(texts):
        ids = np.array([tokenizer(text)[:8]])
        logits = task({"token_ids": ids, "padding_mask": np.ones_like(ids)})[0, -1]
        expected = tf.nn.log_softmax(logits)
        np.testing.assert_allclose(found["log_probabilities"][row], expected, atol=1e-5)
        best = np.argsort(-expected)[:5]
        assert found["tokens"][row].numpy().tolist() == [
            tokenizer.id_to_token(int(index)).encode() for index in best
        ]
        np.testing.assert_allclose(found["probabilities"][row], np.exp(expected)[best], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one token in each"):
        functions["serving_default"](text=strings(["low", " "]))
    ids = tf.constant([[4, 5, 6, 7], [8, 9, 0, 0]])
    found = functions["tokens"](token_ids=ids, lengths=tf.constant([4, 2]))["log_probabilities"]
    alone = task({"token_ids": ids[1:, :2], "padding_mask": tf.ones((1, 2), bool)})
    np.testing.assert_allclose(found[1], tf.nn.log_softmax(alone[0, -1]), atol=1e-5)
    task = CausalLM(gpt_backbone(size))
    assert sorted(Signatures(task).functions()) == ["serving_default", "tokens"]
    with pytest.raises(ValueError, match="pair=True. Received: a CausalLM with NoneType"):
        Signatures(task, pair=True)


def test_gpt_is_asked_as_its_fine_tuning_frames_texts():
    from keras_bert3.tasks import gpt_fine_tuning as tasks
    from keras_bert3.tokenizers.byte_pair import TASK_TOKENS

    tokenizer = gpt_tokenizer(special_tokens=TASK_TOKENS)
    body = gpt_backbone(tokenizer.vocabulary_size)
    texts, others = ["lower low", "", "low " * 40], ["new lower", "slow " * 20, "low"]
    for cls, pairs in ((tasks.GPTTextClassifier, (False, True)), (tasks.GPTSimilarity, (True,))):
        preprocessor = cls.preprocessor_class(tokenizer, max_sequence_length=20)
        task = cls(body, 3, preprocessor)
        rows = 2 if cls is tasks.GPTSimilarity else None
        assert Signatures(task).ids.shape.as_list() == [None, *[rows] * bool(rows), None]
        for pair in pairs:
            given = (strings(texts), strings(others)) if pair else (strings(texts),)
            found = Signatures(task, pair=pair).texts(*given)["scores"]
            expected = task.predict((texts, others) if pair else texts, verbose=0)
            np.testing.assert_allclose(found, expected, atol=1e-5)
    preprocessor = tasks.GPTMultipleChoice.preprocessor_class(tokenizer, max_sequence_length=20)
    task = tasks.GPTMultipleChoice(body, preprocessor)
    choices = [["low", "lower " * 12], ["", "new"], ["er", "w"]]
    found = Signatures(task).texts(strings(texts), choices=strings(choices))["scores"]
    expected = task.predict((texts, choices), verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_deberta_fills_masks_among_bytes_as_in_python():
    from keras_bert3.backbones.deberta import DebertaBackbone
    from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
    from tests.tokenizers.test_byte_level_byte_pair import VOCABULARY, tokenizer

    sizes = {**toy.SIZE, "num_layers": 2, "initializer_range": 0.5}
    body = DebertaBackbone(vocabulary_size=len(VOCABULARY), **sizes)
    task = MaskedLM(body, preprocessor=MaskedLMPreprocessor(tokenizer(), 16))
    task._check_heads_are_known = lambda: None  # toys are not trained
    texts = ["lower [MASK] low", "[MASK] and[MASK]"]
    found = Signatures(task).texts(strings(texts))
    for row, expected in enumerate(task.fill_mask(texts)):
        for mask, pairs in enumerate(expected):
            names = [token.encode() for token, _ in pairs]
            assert found["tokens"][row, mask].numpy().tolist() == names
            given = [p for _, p in pairs]
            np.testing.assert_allclose(found["probabilities"][row, mask], given, atol=1e-5)


def test_a_second_text_is_never_taken_and_left_unread():
    from keras_bert3.tasks.multiple_choice import MultipleChoice

    for task in (toy.masked_lm(), MultipleChoice(backbone(), Preprocessor(toy.tokenizer()))):
        with pytest.raises(ValueError, match=f"pair=True. Received: a {type(task).__name__} with"):
            Signatures(task, pair=True)


def test_texts_with_added_tokens_are_left_to_the_python_tokenizer():
    from keras_bert3.serving.graph_text import tokenizer_has_graph
    from keras_bert3.tasks.extractive_qa import ExtractiveQA
    from keras_bert3.tasks.text_classifier import TextClassifier
    from keras_bert3.tasks.token_classifier import TokenClassifier

    tokenizer = WordPieceTokenizer(toy.tokenizer().vocabulary, added_tokens=["[E1]"])
    assert tokenizer_has_graph(toy.tokenizer()) and not tokenizer_has_graph(tokenizer)
    body = backbone(vocabulary_size=tokenizer.vocabulary_size)
    tasks = [
        TextClassifier(body, 2, TextClassifier.preprocessor_class(tokenizer, 16)),
        TokenClassifier(body, 2, TokenClassifier.preprocessor_class(tokenizer, 16)),
        ExtractiveQA(body, ExtractiveQA.preprocessor_class(tokenizer, 24, 5, 6)),
    ]
    for task in tasks:
        parts = Signatures(task)
        assert [parts.text, parts.tags, parts.answers] == [None] * 3
    assert sorted(made(tasks[0])) == ["serving_default", "tokens"]
    with pytest.raises(ValueError, match="tokenised in the graph, for pair=True"):
        Signatures(tasks[0], pair=True)


def test_only_tasks_with_known_outputs_are_served():
    from keras_bert3.tasks.task import Task

    with pytest.raises(ValueError, match="Expected a task among TextClassifier"):
        Signatures(Task(backbone()))
