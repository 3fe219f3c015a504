"""Replaced-token detection on a toy: every row against numpy, every gradient where it belongs."""

import keras
import numpy as np
import pytest

from keras_bert3 import DebertaV2Backbone, ReplacedTokenDetection, SiFT, Task
from keras_bert3.tasks.replaced_token_detection import ReplacedTokenPreprocessor
from tests.layer_checks import to_numpy
from tests.tasks import toy

SIZE = {**toy.SIZE, "max_sequence_length": 12, "initializer_range": 0.2}
SIZE |= {"span": 4, "terms": ()}  # what the attention adds has no part in the objective


def backbone(num_layers=1, **arguments):
    size = {**SIZE, "vocabulary_size": toy.tokenizer().vocabulary_size, "num_layers": num_layers}
    return DebertaV2Backbone(**{**size, **arguments})


def make(sharing="disentangled", texts=False, **arguments):
    preprocessor = ReplacedTokenPreprocessor(toy.tokenizer(), 12) if texts else None
    return ReplacedTokenDetection(backbone(), backbone(2), preprocessor, sharing, **arguments)


def batch():
    """Four rows of 12 tokens, one of them with padding, one with a single prediction."""
    x, y, weights = toy.batch()
    x = {name: np.array(value) for name, value in x.items() if name != "segment_ids"}
    x["mask_positions"][:] = [3, 5, 10]
    x["mask_positions"][0, 1:] = 0
    x["padding_mask"][1, 9:] = False
    x["token_ids"][:, 0] = 2
    x["mask_positions"][1] = [1, 4, 8]
    for row, places in zip(x["token_ids"], x["mask_positions"], strict=True):
        row[places[places > 0]] = 4
    return x, {"masked_lm": y["masked_lm"]}, {"masked_lm": weights["masked_lm"]}


def sigmoid_cross_entropy(scores, labels):
    return np.maximum(scores, 0) - scores * labels + np.log1p(np.exp(-np.abs(scores)))


def oracle(task, x, y, weights, outputs):
    """The losses, row by row, from the samples the task drew."""
    logits = to_numpy(outputs["masked_lm"]).astype("float64")
    sampled, scores = to_numpy(outputs["sampled"]), to_numpy(outputs["replaced"])[..., 0]
    total, count, ids = 0.0, 0.0, x["token_ids"].copy()
    labels = np.zeros(ids.shape)
    for row, slot in np.ndindex(sampled.shape):
        position, hidden = x["mask_positions"][row, slot], y["masked_lm"][row, slot]
        weight = weights["masked_lm"][row, slot]
        values = logits[row, slot] - logits[row, slot].max()
        total -= weight * (values[hidden] - np.log(np.exp(values).sum()))
        count += weight
        if position:
            ids[row, position] = sampled[row, slot]
            labels[row, position] = sampled[row, slot] != hidden
    real = x["padding_mask"]
    detection = sigmoid_cross_entropy(scores.astype("float64"), labels)[real].mean()
    return ids, total / count, detection


@pytest.mark.parametrize("sharing", ["disentangled", "shared", "separate"])
def test_losses_equal_a_loop_and_the_export_is_the_trained_network(sharing):
    task = make(sharing, discriminator_weight=7.0)
    if sharing == "disentangled":
        table = task.backbone.token_embeddings
        table.assign(np.random.default_rng(5).normal(0, 0.2, table.shape))
    x, y, weights = batch()
    outputs = task(x)
    ids, generation, detection = oracle(task, x, y, weights, outputs)
    tensors = [
        {k: keras.ops.convert_to_tensor(v) for k, v in part.items()} for part in (x, y, weights)
    ]
    task.compile()
    loss = task.compute_loss(tensors[0], tensors[1], outputs, tensors[2])
    np.testing.assert_allclose(to_numpy(loss), generation + 7 * detection, rtol=1e-5)
    hidden = task.discriminator()({"token_ids": ids, "padding_mask": x["padding_mask"]})
    scores = to_numpy(task.replaced_token_head(hidden["sequence_output"]))
    np.testing.assert_allclose(scores, to_numpy(outputs["replaced"]), atol=1e-5)


def tables(task):
    return [
        np.array(to_numpy(table))
        for table in (task.generator_backbone.token_embeddings, task.backbone.token_embeddings)
    ]


# What moves E_G and the discriminator's own table where the generator's loss weighs nothing.
MOVES = {"disentangled": (False, True), "shared": (True, False), "separate": (False, True)}


@pytest.mark.parametrize("sharing", MOVES)
def test_GDES_detection_moves_the_tables_it_may(sharing):
    task = make(sharing)
    weights = {"masked_lm": 0.0, "replaced": 1.0}
    task.compile(keras.optimizers.SGD(0.1), loss_weights=weights)
    before = tables(task)
    x, y, sample_weight = batch()
    task.train_on_batch(x, y, sample_weight)
    moved = tuple(np.abs(a - b).max() > 1e-7 for a, b in zip(tables(task), before, strict=True))
    assert moved == MOVES[sharing]
    if sharing == "disentangled":
        assert (before[1] == 0).all()
        merged = to_numpy(task.discriminator().token_embeddings)
        np.testing.assert_allclose(merged, sum(tables(task)), rtol=1e-6)


@pytest.mark.graph
def test_texts_train_it_and_a_preset_keeps_it(tmp_path):
    task = make(texts=True)
    task.compile(keras.optimizers.Adam(1e-2))
    history = task.fit(toy.TEXTS, epochs=4, batch_size=12, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert 0 <= history["replaced_accuracy"][-1] <= 1
    task.save_to_preset(tmp_path / "task")
    twin = Task.from_preset(tmp_path / "task")
    assert type(twin) is ReplacedTokenDetection
    x = batch()[0]
    logits = [to_numpy(model(x)["masked_lm"]) for model in (task, twin)]
    np.testing.assert_allclose(*logits, atol=1e-5)
    task.discriminator().save_to_preset(tmp_path / "backbone")
    loaded = DebertaV2Backbone.from_preset(tmp_path / "backbone")
    for ours, theirs, again in zip(
        task.discriminator().get_weights(),
        loaded.get_weights(),
        twin.discriminator().get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours, again)
    heads = [model.replaced_token_head.get_weights() for model in (task, twin)]
    for ours, again in zip(*heads, strict=True):
        np.testing.assert_array_equal(ours, again)


def test_what_cannot_be_trained_together_is_refused():
    with pytest.raises(ValueError, match="`sharing` among.*Received: 'none'"):
        make("none")
    with pytest.raises(ValueError, match=r"width.*\(\d+, 8\) and \(\d+, 16\)"):
        ReplacedTokenDetection(backbone(), backbone(2, hidden_dim=8))
    with pytest.raises(ValueError, match="DeBERTa for `backbone`. Received: BertBackbone"):
        ReplacedTokenDetection(toy.backbone(), backbone(2))
    with pytest.raises(ValueError, match=r"no `adversarial`.*Received: adversarial=.*SiFT"):
        make().compile(adversarial=SiFT())
    with pytest.raises(ValueError, match="positive temperature. Received: 0"):
        make(temperature=0)
    with pytest.raises(ValueError, match="`discriminator_weight` of at least 0. Received: -1"):
        make(discriminator_weight=-1)
    with pytest.raises(ValueError, match="with 'mask_positions'"):
        make()({"token_ids": np.ones((1, 3), "int32"), "padding_mask": np.ones((1, 3))})
