"""Rows of one length in the first two batches, of another after them."""

import keras
import numpy as np
import pytest

from keras_bert3 import ExtractiveQA, MultipleChoice, TextClassifier, TokenClassifier
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.varying_lengths import of_varying_lengths
from tests.tasks import toy

SHORT, LONG = "the cat sat", " ".join(toy.TEXTS[:7])
TEXTS = [SHORT] * 4 + [LONG] * 2
VARYING = Preprocessor(toy.tokenizer(), max_sequence_length=64, pad_to_multiple_of=8)


class Parity(keras.utils.PyDataset):
    """Batches of the user's own: which of two numbers a row is made of."""

    def __len__(self):
        return 3

    def __getitem__(self, batch):
        shape = (2, 8 if batch < 2 else 24)
        ids = np.array([[6], [7]]) * np.ones(shape, "int32")
        x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones(shape, bool)}
        return x, np.array([0, 1])


def classes(backbone):
    return TextClassifier(backbone, 2, VARYING), TEXTS, [0, 1] * 3


def classes_of_arrays(backbone):
    return TextClassifier(backbone, 2), Parity(), None


def words(backbone):
    preprocessor = TokenClassifier.preprocessor_class(toy.tokenizer(), 64)
    x = [text.split() for text in TEXTS]
    return TokenClassifier(backbone, 2, preprocessor), x, [[0] * len(row) for row in x]


def choices(backbone):
    return MultipleChoice(backbone, VARYING), (TEXTS, [["the cat", "a dog"]] * 6), [0, 1] * 3


def questions(backbone):
    preprocessor = ExtractiveQA.preprocessor_class(toy.tokenizer(), 64, 8, 8)
    return ExtractiveQA(backbone, preprocessor), (["the dog"] * 6, TEXTS), [(0, 3)] * 6


def masks(backbone):
    return MaskedLM(backbone, False, MaskedLMPreprocessor(toy.tokenizer())), TEXTS, None


@pytest.mark.parametrize(
    "make", [classes, classes_of_arrays, words, choices, questions, masks], ids=lambda f: f.__name__
)
def test_fit_and_evaluate(make):
    task, x, y = make(toy.backbone(max_sequence_length=64))
    validation = x if isinstance(x, Parity) else (x, y)
    task.fit(x, y, batch_size=2, shuffle=False, epochs=2, validation_data=validation, verbose=0)
    assert int(task.optimizer.iterations) == 6
    batches = x if isinstance(x, Parity) else task.batches(x, y, batch_size=2, shuffle=False)
    losses = [task.test_on_batch(*batches[i], return_dict=True)["loss"] for i in range(3)]
    received = task.evaluate(batches, verbose=0, return_dict=True)["loss"]
    assert received == pytest.approx(np.mean(losses), rel=1e-5)


def test_predict():
    task, _, _ = classes(toy.backbone(max_sequence_length=64))
    x = [LONG] * 4 + [SHORT] * 2  # the longest come first in any case
    together = task.predict(x, batch_size=6, verbose=0)
    np.testing.assert_allclose(task.predict(x, batch_size=2, verbose=0), together, atol=1e-5)


def test_class_weights():
    task, batches, _ = classes_of_arrays(toy.backbone())
    task.compile(keras.optimizers.SGD(0.0), task.default_compile()["loss"])
    losses = []
    for weights in ({0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0}):
        losses += task.fit(batches, class_weight=weights, verbose=0).history["loss"]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)
    assert np.mean(losses) == pytest.approx(task.evaluate(batches, verbose=0), rel=1e-4)


@pytest.mark.parametrize("other", [None, [1, 2], iter([])], ids=["none", "list", "iterator"])
def test_anything_else_is_left_alone(other):
    assert of_varying_lengths(other) is other
