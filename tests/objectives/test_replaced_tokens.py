import keras
import numpy as np

from keras_bert3.objectives import replaced_tokens as replaced
from tests.layer_checks import to_numpy

IDS = np.array([[2, 4, 7, 4, 3], [2, 9, 4, 3, 0]], "int32")
POSITIONS = np.array([[1, 3], [2, 0]], "int32")
SAMPLED = np.array([[5, 8], [6, 11]], "int32")


def test_sampled_tokens_stand_where_masks_stood_and_nowhere_else():
    received = to_numpy(replaced.replace_tokens(IDS, POSITIONS, SAMPLED))
    assert received.tolist() == [[2, 5, 7, 8, 3], [2, 9, 6, 3, 0]]


def test_a_sample_that_is_the_hidden_token_is_no_replacement():
    hidden = np.array([[5, 9], [7, 0]], "int32")
    received = to_numpy(replaced.replaced_labels(POSITIONS, SAMPLED, hidden, 5))
    assert received.tolist() == [[0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]


def test_samples_follow_the_softmax_and_the_seed():
    odds = np.array([0.5, 0.3, 0.2, 0.0])
    logits = np.broadcast_to(np.log(odds + 1e-12), (2, 5000, 4)).astype("float32")

    def draw(seed, **arguments):
        seed = keras.random.SeedGenerator(seed)
        return to_numpy(replaced.sample_tokens(logits, seed, **arguments))

    sampled = draw(3)
    assert sampled.shape == (2, 5000)
    np.testing.assert_allclose(np.bincount(sampled.ravel(), minlength=4) / 1e4, odds, atol=0.015)
    assert (sampled == draw(3)).all() and (sampled != draw(4)).any()
    sharp = odds**2 / (odds**2).sum()
    counts = np.bincount(draw(3, temperature=0.5).ravel(), minlength=4) / 1e4
    np.testing.assert_allclose(counts, sharp, atol=0.015)
