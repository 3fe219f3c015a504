import numpy as np
import pytest

from keras_bert3 import CausalLM, LSTMBackbone
from tests.layer_checks import to_numpy

V, W = 11, 6


@pytest.fixture(scope="module")
def backbone():
    made, generator = (
        LSTMBackbone(V, W, dropout=0.0, max_sequence_length=9),
        np.random.default_rng(0),
    )
    for weight in made.trainable_weights:
        weight.assign(generator.normal(0, 0.5, weight.shape))
    return made


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loop(backbone, ids):
    """Hochreiter and Schmidhuber's recurrence with a forget gate, one token at a time."""
    table = to_numpy(backbone.token_embeddings.value)
    kernel, recurrent, bias = (to_numpy(w.value) for w in backbone.lstm.weights[:3])
    hidden, cell, rows = np.zeros(W), np.zeros(W), []
    for token in ids:
        enter, forget, candidate, leave = np.split(
            table[token] @ kernel + hidden @ recurrent + bias, 4
        )
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(candidate)
        hidden = sigmoid(leave) * np.tanh(cell)
        rows.append(hidden)
    return np.array(rows)


def test_it_follows_the_recurrence_wherever_padding_is(backbone):
    ids = np.array([3, 1, 4, 1, 5])
    expected = loop(backbone, ids)
    for left, right in ((0, 0), (0, 3), (3, 0), (1, 2)):
        inputs = {
            "token_ids": np.pad(ids, (left, right))[None],
            "padding_mask": np.pad(np.ones(5, "int32"), (left, right))[None],
        }
        outputs = backbone(inputs)
        hidden = to_numpy(outputs["sequence_output"])[0, left : left + 5]
        np.testing.assert_allclose(hidden, expected, atol=1e-5)
        np.testing.assert_allclose(
            to_numpy(backbone.pool(outputs, inputs))[0], expected[-1], atol=1e-5
        )


def test_it_takes_the_transformers_place_in_a_language_model(backbone):
    task = CausalLM(backbone)
    ids = np.array([[3, 1, 4]])
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    wanted = loop(backbone, ids[0]) @ to_numpy(backbone.token_embeddings.value).T
    np.testing.assert_allclose(to_numpy(task(inputs))[0], wanted, atol=1e-5)
    again = LSTMBackbone.from_config(backbone.get_config())
    assert again.get_config() == backbone.get_config()
    with pytest.raises(ValueError, match="step by step.*Received: LSTMBackbone"):
        task.generate([[3, 1]], 5)
