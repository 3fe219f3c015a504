import numpy as np
import pytest

from keras_bert3 import GPTBackbone, MultipleChoice
from keras_bert3.tasks.preprocessor import Preprocessor
from tests.layer_checks import to_numpy
from tests.tasks import toy

CONTEXTS = toy.TEXTS[:4]
CHOICES = [["the cat", "a dog ran"], ["a mat", "it slept"], ["a log", "all day"], ["a", "the tree"]]


@pytest.fixture(scope="module")
def task():
    return MultipleChoice(toy.backbone(), Preprocessor(toy.tokenizer(), 16))


def test_each_choice_is_scored_by_itself(task):
    scores = task.predict((CONTEXTS, CHOICES), verbose=0)
    assert scores.shape == (4, 2)
    for choice in range(2):
        pooled = task.backbone(task.preprocessor(CONTEXTS, [row[choice] for row in CHOICES]))
        expected = to_numpy(task.multiple_choice_head(pooled["pooled_output"]))
        np.testing.assert_allclose(scores[:, choice], expected[:, 0], atol=1e-5)


def test_the_loss_is_a_softmax_over_the_choices(task):
    scores = task.predict((CONTEXTS, CHOICES), verbose=0).astype("float64")
    answers = np.array([0, 1, 1, 0])
    losses = np.log(np.exp(scores).sum(-1)) - scores[np.arange(4), answers]
    received = task.evaluate((CONTEXTS, CHOICES), answers, verbose=0, return_dict=True)
    assert abs(received["loss"] - losses.mean()) < 1e-5


@pytest.mark.graph
def test_training_moves_the_head(task):
    before = to_numpy(task.multiple_choice_head.kernel)
    task.fit((CONTEXTS, CHOICES), [0, 1, 1, 0], epochs=2, verbose=0)
    assert not np.array_equal(before, to_numpy(task.multiple_choice_head.kernel))


def test_choose_gives_numbers(task):
    best = task.choose((CONTEXTS, CHOICES))
    np.testing.assert_array_equal(best, task.predict((CONTEXTS, CHOICES), verbose=0).argmax(1))
    assert task.choose((CONTEXTS[1], CHOICES[1])) == best[1]


def test_GP3_gpt_has_one_output_for_each_row():
    task = MultipleChoice(GPTBackbone(24, 1, 2, 16, 32, max_sequence_length=16))
    ids = np.random.default_rng(0).integers(1, 24, (2, 3, 6)).astype("int32")
    scores = to_numpy(task({"token_ids": ids, "padding_mask": np.ones((2, 3, 6), bool)}))
    assert scores.shape == (2, 3) and task.multiple_choice_head.units == 1
    rows = {"token_ids": ids.reshape(6, 6), "padding_mask": np.ones((6, 6), bool)}
    last = to_numpy(task.backbone(rows)["sequence_output"])[:, -1]
    expected = to_numpy(task.multiple_choice_head(last)).reshape(2, 3)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_what_cannot_be_scored_is_refused(task):
    with pytest.raises(ValueError, match=r"as many choices.*\[1, 2\]"):
        task.predict((CONTEXTS[:2], [["a"], ["a", "the"]]), verbose=0)
    flat = {name: np.zeros((2, 4), "int32") for name in ("token_ids", "padding_mask")}
    with pytest.raises(ValueError, match=r"\(batch, choices, length\).*\(2, 4\)"):
        task(flat)
    with pytest.raises(ValueError, match="in a tuple.*Received: a list of 2"):
        task.predict([CONTEXTS, CONTEXTS], verbose=0)
    with pytest.raises(ValueError, match="number of a choice.*y=None"):
        task.fit((CONTEXTS, CHOICES), verbose=0)


def test_a_preset_gives_the_same_task_back(task, tmp_path):
    task.save_to_preset(tmp_path / "p")
    twin = MultipleChoice.from_preset(tmp_path / "p")
    np.testing.assert_array_equal(
        twin.predict((CONTEXTS, CHOICES), verbose=0), task.predict((CONTEXTS, CHOICES), verbose=0)
    )
