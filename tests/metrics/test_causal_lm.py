import math

import numpy as np

from keras_bert3.metrics.causal_lm import Perplexity, evaluate_causal_lm, unigram_perplexity

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 4, 5)).astype("float32")
LABELS = RNG.integers(0, 5, (3, 4))
WEIGHTS = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], "float32")


def losses():
    found = []
    for row in range(3):
        for t in range(4):
            if WEIGHTS[row, t]:
                p = np.exp(LOGITS[row, t]) / np.exp(LOGITS[row, t]).sum()
                found.append((-math.log(p[LABELS[row, t]]), int(LABELS[row, t])))
    return found


class Fixed:
    def predict_on_batch(self, x):
        return LOGITS[x["rows"]]


def batches():
    for rows in ([0, 1], [2]):
        yield {"rows": rows}, LABELS[rows], WEIGHTS[rows]


def test_perplexity_weighs_every_token_alike():
    metric = Perplexity()
    for x, labels, weights in batches():
        metric.update_state(labels, LOGITS[x["rows"]], weights)
    mean = np.mean([loss for loss, _ in losses()])
    np.testing.assert_allclose(float(metric.result()), math.exp(mean), rtol=1e-5)
    assert Perplexity.from_config(metric.get_config()).name == "perplexity"


def test_evaluation_counts_tokens_and_words():
    ends_word = np.array([True, False, False, False, True])
    result = evaluate_causal_lm(Fixed(), batches(), ends_word)
    values = [loss for loss, _ in losses()]
    words = sum(ends_word[label] for _, label in losses())
    assert result["tokens"] == 7 and 0 < words < 7
    np.testing.assert_allclose(result["loss"], np.mean(values), rtol=1e-6)
    np.testing.assert_allclose(result["perplexity"], math.exp(np.mean(values)), rtol=1e-6)
    np.testing.assert_allclose(result["word_perplexity"], math.exp(sum(values) / words), rtol=1e-6)
    assert "word_perplexity" not in evaluate_causal_lm(Fixed(), batches())


def test_unigram_perplexity():
    counts = np.array([3, 0, 1, 0, 1])
    share = (counts + 1) / 10
    wanted = math.exp(-np.mean([math.log(share[label]) for _, label in losses()]))
    np.testing.assert_allclose(unigram_perplexity(counts, batches()), wanted)
