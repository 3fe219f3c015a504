import numpy as np

from keras_bert3.metrics.masked_lm import (
    evaluate_masked_lm,
    uniform_cross_entropy,
    unigram_cross_entropy,
)

RNG = np.random.default_rng(0)


class Fixed:
    """Gives back the logits it is fed."""

    def predict_on_batch(self, x):
        return x


def batch(predictions, rows):
    shape = rows, predictions
    x = {"masked_lm": RNG.normal(size=(*shape, 7)), "next_sentence": RNG.normal(size=(rows, 2))}
    y = {"masked_lm": RNG.integers(0, 7, shape), "next_sentence": RNG.integers(0, 2, rows)}
    w = {"masked_lm": (RNG.random(shape) < 0.6) * 1.0, "next_sentence": np.ones(rows)}
    return x, y, w


BATCHES = [batch(3, 4), batch(3, 2)]


def test_scores_equal_a_loop_over_single_predictions():
    losses, hits = [], []
    for x, y, w in BATCHES:
        for index in np.ndindex(*y["masked_lm"].shape):
            if w["masked_lm"][index]:
                p = np.exp(x["masked_lm"][index])
                losses.append(-np.log(p[y["masked_lm"][index]] / p.sum()))
                hits.append(p.argmax() == y["masked_lm"][index])
    scores = evaluate_masked_lm(Fixed(), BATCHES)
    assert scores["predictions"] == len(losses)
    np.testing.assert_allclose(scores["masked_lm_loss"], np.mean(losses), rtol=1e-6)
    np.testing.assert_allclose(scores["masked_lm_accuracy"], np.mean(hits), rtol=1e-6)
    assert 0 <= scores["next_sentence_accuracy"] <= 1


def test_unigram_is_the_smoothed_frequency_of_the_hidden_tokens():
    counts = np.array([10, 0, 3, 1, 0, 0, 2])
    p = (counts + 1) / (counts.sum() + 7)
    hidden = np.concatenate([y["masked_lm"][w["masked_lm"] > 0] for _, y, w in BATCHES])
    np.testing.assert_allclose(
        unigram_cross_entropy(counts, BATCHES), -np.log(p[hidden]).mean(), rtol=1e-9
    )


def test_uniform_is_the_log_of_the_vocabulary():
    assert uniform_cross_entropy(1000) == np.log(1000)
