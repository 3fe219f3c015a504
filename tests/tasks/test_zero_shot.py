import numpy as np
import pytest

from keras_bert3 import CausalLM, GPTBackbone
from keras_bert3.tasks.zero_shot import choose, score_continuations
from tests.layer_checks import to_numpy

CONTEXTS = [[1, 2, 3], [4], [5, 6, 7, 8, 1]]
CONTINUATIONS = [[9, 2], [3, 3, 3, 1], [10]]


@pytest.fixture(scope="module")
def task():
    backbone, generator = (
        GPTBackbone(11, 1, 2, 8, 16, max_sequence_length=8),
        np.random.default_rng(0),
    )
    for weight in backbone.weights:
        if "seed" not in weight.path:
            weight.assign(generator.normal(0, 0.7, weight.shape))
    return CausalLM(backbone)


def expected(task, context, continuation):
    row = np.array([[*context, *continuation]])
    logits = to_numpy(task({"token_ids": row, "padding_mask": np.ones_like(row)}))[0]
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.mean([logs[len(context) + i - 1, t] for i, t in enumerate(continuation)])


def test_the_mean_is_over_the_continuation_alone(task):
    wanted = [expected(task, *pair) for pair in zip(CONTEXTS, CONTINUATIONS, strict=True)]
    for batch_size in (1, 2, 16):
        scores = score_continuations(task, CONTEXTS, CONTINUATIONS, batch_size)
        np.testing.assert_allclose(scores, wanted, atol=1e-5)


def test_the_likeliest_candidate_is_chosen(task):
    answers = [[token] for token in range(11)]
    scores = [expected(task, [4, 2], answer) for answer in answers]
    referents = [expected(task, context, [7, 7]) for context in CONTEXTS]
    examples = [([[4, 2]] * 11, answers), (CONTEXTS, [[7, 7]] * 3)]
    assert choose(task, examples).tolist() == [np.argmax(scores), np.argmax(referents)]


def test_long_contexts_lose_their_beginning(task):
    scores = score_continuations(task, [[9] * 5 + [1, 2, 3, 4, 5, 6]], [[7, 8]])
    np.testing.assert_allclose(scores, [expected(task, [1, 2, 3, 4, 5, 6], [7, 8])], atol=1e-5)


def test_wrong_arguments_are_named(task):
    for contexts, continuations, message in (
        ([[1]], [], "as many continuations as contexts. Received: 0 and 1"),
        ([[1], []], [[1], [1]], "Received: 0 and 1 tokens in row 1"),
        ([[1]], [[1] * 8], "fewer than 8 tokens.*8 tokens in row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            score_continuations(task, contexts, continuations)
