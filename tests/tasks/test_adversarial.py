"""SiFT in `fit`, against a float64 model in numpy whose gradients are finite differences."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert3 import BiLSTMBackbone, DebertaV2Backbone, GPTBackbone, TextClassifier
from keras_bert3.objectives.sift import SiFT
from keras_bert3.tasks.adversarial import changed_input, embedded_layer
from keras_bert3.tasks.task import Task
from tests.layer_checks import to_numpy
from tests.tasks import toy

IDS = np.array([[1, 2, 3], [3, 4, 4]])
LABELS = np.array([0, 2])
WIDTH, CLASSES = 4, 3
NOISE = 0.3 * np.random.default_rng(5).normal(size=(2, 3, WIDTH))
SIFT = {"weight": 2.0, "step_size": 0.4}


class Embeddings(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.table = self.add_weight((5, WIDTH), initializer="normal", name="table")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-12)
        self.norm.build((None, None, WIDTH))


class Bag(keras.layers.Layer):
    """The smallest backbone: normalised word vectors, added."""

    vocabulary_size, hidden_dim, num_segments, has_pooler = 5, WIDTH, 0, False

    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings()
        self.token_embeddings = self.embeddings.table
        self.built = True

    def call(self, inputs, training=None):
        words = ops.take(ops.convert_to_tensor(self.embeddings.table) * 1.0, inputs["token_ids"], 0)
        return ops.mean(self.embeddings.norm(words), axis=1)


class Classifier(Task):
    def __init__(self, dropout=0.0):
        super().__init__(Bag())
        self.dropout = keras.layers.Dropout(dropout)
        self.head = keras.layers.Dense(CLASSES)
        self.head.build((None, WIDTH))

    def call(self, inputs, training=None):
        bag = self.backbone(inputs, training=training)
        return self.head(self.dropout(bag, training=training))

    def default_compile(self):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return {"optimizer": keras.optimizers.SGD(1.0), "loss": loss}


class Given(SiFT):
    """SiFT from a perturbation that the test knows."""

    def start(self, shape, seed):
        assert tuple(shape) == NOISE.shape
        return ops.cast(NOISE, "float32")


def normal(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def logits_of(embedded, weights):
    """Mean of LayerNorm, then the head; `embedded` before the LayerNorm."""
    hidden = (normal(embedded) * weights["gamma"] + weights["beta"]).mean(1)
    return hidden @ weights["kernel"] + weights["bias"]


def slopes(function, at, size=1e-5):
    """Gradient by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[place] = size
        found[place] = (function(at + change) - function(at - change)) / (2 * size)
    return found


def expected_update(weights):
    """Gradient of the task's loss plus SiFT's, by its definition, for every weight."""
    embedded = normal(weights["table"][IDS])
    clean = log_softmax(logits_of(weights["table"][IDS], weights))

    def distance(noise):
        return -(np.exp(clean) * log_softmax(logits_of(embedded + noise, weights))).sum()

    uphill = slopes(distance, NOISE)
    moved = embedded + NOISE + 0.4 * uphill / (1e-6 + np.abs(uphill).max(-1, keepdims=True))
    other = log_softmax(logits_of(moved, weights))

    def total(name, value):
        given = {**weights, name: value}
        t = log_softmax(logits_of(given["table"][IDS], given))
        s = log_softmax(logits_of(moved, given))
        task = -t[np.arange(2), LABELS].mean()
        return task - 2.0 * ((np.exp(clean) * s).sum(-1) + (np.exp(other) * t).sum(-1)).mean()

    return {name: slopes(lambda v, n=name: total(n, v), value) for name, value in weights.items()}


def weights_of(task):
    norm = task.backbone.embeddings.norm
    parts = {"table": task.backbone.embeddings.table, "gamma": norm.gamma, "beta": norm.beta}
    parts |= {"kernel": task.head.kernel, "bias": task.head.bias}
    return {name: to_numpy(weight).astype("float64") for name, weight in parts.items()}


def batch():
    return {"token_ids": IDS.astype("int32"), "padding_mask": np.ones((2, 3), bool)}


@pytest.mark.parametrize("accumulation", [None, 2])
def test_fit_updates_by_the_gradient_of_the_definition(accumulation):
    task = Classifier()
    task.backbone.embeddings.table.assign(np.random.default_rng(1).normal(size=(5, WIDTH)))
    task.backbone.embeddings.norm.gamma.assign([1.0, 0.5, 2.0, 1.0])
    optimizer = keras.optimizers.SGD(1.0, gradient_accumulation_steps=accumulation)
    task.compile(optimizer, adversarial=Given(**SIFT))
    before = weights_of(task)
    task.fit(batch(), LABELS, batch_size=2, epochs=accumulation or 1, shuffle=False, verbose=0)
    expected, after = expected_update(before), weights_of(task)
    for name in before:
        # float32 in the network, differences in the oracle
        np.testing.assert_allclose(before[name] - after[name], expected[name], atol=2e-5)
    largest = max(np.abs(value).max() for value in expected.values())
    assert largest > 0.05


@pytest.mark.graph
def test_P1_loss_falls_in_mixed_float16_with_loss_scaling():
    keras.config.set_dtype_policy("mixed_float16")
    task = Classifier(dropout=0.01)
    assert task.head.compute_dtype == "float16"
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), 2.0**12)
    task.compile(optimizer, adversarial=SiFT(weight=0.5))
    history = task.fit(batch(), LABELS, batch_size=2, epochs=20, shuffle=False, verbose=0)
    losses = history.history["loss"]
    # hardly any dropout: of four features, one that is missing makes logits differ by itself
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    assert to_numpy(optimizer.dynamic_scale) == 2.0**12  # no step was lost


def test_evaluation_has_no_adversarial_loss():
    task = Classifier()
    task.compile(adversarial=Given(**SIFT))
    plain = task.evaluate(batch(), LABELS, batch_size=2, verbose=0)
    logits = log_softmax(task.predict(batch(), verbose=0).astype("float64"))
    assert abs(plain - -logits[np.arange(2), LABELS].mean()) < 1e-5
    task.compile()
    assert task.adversarial is None
    with pytest.raises(ValueError, match="such as SiFT.*Received: True"):
        task.compile(adversarial=True)


def test_what_is_perturbed_in_each_backbone():
    bert = toy.backbone(num_layers=1)
    assert embedded_layer(bert) is bert.embeddings.norm
    deberta = DebertaV2Backbone(20, 1, 2, 8, 16, span=4)
    assert embedded_layer(deberta) is deberta.embeddings.norm
    gpt = GPTBackbone(20, 1, 2, 8, 16, max_sequence_length=8)
    assert embedded_layer(gpt) is gpt.blocks[0]
    with pytest.raises(ValueError, match="Received: Dense"):
        embedded_layer(keras.layers.Dense(2))


def test_words_are_perturbed_below_an_lstm_of_another_width():
    encoder = toy.backbone(num_layers=1, initializer_range=0.5)
    task = TextClassifier(BiLSTMBackbone(encoder, lstm_dim=3), num_classes=2, preprocessor=None)
    losses = []
    for adversarial in (None, SiFT(weight=1e6, step_size=0.4)):
        task.compile(keras.optimizers.SGD(0.0), adversarial=adversarial)
        loss = task.train_on_batch({**batch(), "segment_ids": 0 * IDS}, LABELS // 2)[0]
        losses.append(float(loss))
    assert losses[1] > losses[0] + 1


def test_a_changed_input_is_changed_back():
    layer = keras.layers.Dense(2, kernel_initializer="ones")
    x = ops.ones((1, 3))
    with pytest.raises(RuntimeError), changed_input(layer, lambda x: 2 * x):
        assert (to_numpy(layer(x)) == 6).all()
        raise RuntimeError
    assert (to_numpy(layer(x)) == 3).all()


def test_divergences_are_weighed_as_the_losses_of_their_outputs():
    rng, seed = np.random.default_rng(0), keras.random.SeedGenerator(0)
    logits = {"masked_lm": rng.normal(size=(2, 3, 5)), "next_sentence": rng.normal(size=(2, 2))}
    others = {name: value[::-1].copy() for name, value in logits.items()}
    given = ({k: ops.convert_to_tensor(v) for k, v in x.items()} for x in (logits, others))
    clean, perturbed = given
    weights = np.array([[1.0, 0, 0], [0, 2, 0]])

    def loss(sample_weight):
        sift = SiFT(weight=2.0)
        return to_numpy(
            sift.loss(clean, lambda _: perturbed, lambda f, at: 0 * at, (1,), seed, sample_weight)
        )

    def divergences(name):
        p, q = log_softmax(logits[name]), log_softmax(others[name])
        return (np.exp(p) * (p - q) + np.exp(q) * (q - p)).sum(-1)

    words, pairs = divergences("masked_lm"), divergences("next_sentence")
    assert abs(loss(None) - 2 * (words.mean() + pairs.mean())) < 1e-4
    received = loss({"masked_lm": weights, "next_sentence": np.ones(2)})
    assert abs(received - 2 * ((words * weights).sum() / 3 + pairs.mean())) < 1e-4
