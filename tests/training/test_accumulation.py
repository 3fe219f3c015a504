import keras
import numpy as np
import pytest

from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.training.accumulation import accumulated, part_of, shared, summed
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay
from tests.layer_checks import to_numpy
from tests.tasks import toy

PARTS, UPDATES = 4, 2


def batch(seed):
    """Eight rows whose numbers of predicted tokens differ from part to part."""
    x, y, weights = toy.batch(rows=8, seed=seed)
    counts = np.array([1, 0, 3, 3, 2, 1, 3, 2])
    weights["masked_lm"] = (np.arange(3) < counts[:, None]).astype("float32")
    return x, y, weights


def train(parts):
    """Weights and loss after two updates, each on the same eight rows."""
    keras.utils.set_random_seed(3)
    task = MaskedLM(toy.backbone(num_layers=1))
    settings = task.default_compile()
    schedule = WarmupLinearDecay(0.02, 0, 4)
    steps = {"gradient_accumulation_steps": parts} if parts > 1 else {}
    # Where a gradient is 0 but for rounding, a small epsilon makes steps of the rounding.
    settings["optimizer"] = BertAdam(schedule, weight_decay=0.1, epsilon=1e-3, **steps)
    if parts > 1:
        settings["loss"] = summed(settings["loss"])
    task.compile(**settings)
    batches = (batch(seed) for seed in range(10))
    batches = accumulated(batches, parts) if parts > 1 else batches
    history = task.fit(batches, steps_per_epoch=parts * UPDATES, verbose=0)
    return task, history.history["loss"][-1]


def test_accumulated_micro_batches_equal_one_large_batch():
    (whole, loss), (parts, its_loss) = train(1), train(PARTS)
    assert int(parts.optimizer.iterations) == UPDATES
    assert float(parts.optimizer.learning_rate) == float(whole.optimizer.learning_rate) > 0
    np.testing.assert_allclose(its_loss, loss, rtol=1e-6)
    for one, other in zip(whole.weights, parts.weights, strict=True):
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), rtol=0, atol=1e-6)


def test_weights_carry_the_share_of_the_whole_batch():
    x = {"ids": np.arange(8).reshape(4, 2)}
    weights = np.array([[1, 1], [1, 0], [0, 0], [0, 1]])
    parts = list(accumulated([(x, np.zeros((4, 2), "int32"), weights)], 2))
    np.testing.assert_array_equal(parts[1][0]["ids"], [[4, 5], [6, 7]])
    np.testing.assert_allclose(parts[0][2], np.array([[1, 1], [1, 0]]) * 2 / 4)
    np.testing.assert_allclose(parts[1][2], np.array([[0, 0], [0, 1]]) * 2 / 4)


def test_without_weights_every_row_counts_the_same_and_zeros_stay_zero():
    (one, two) = accumulated([(np.zeros((4, 2)), {"a": np.zeros(4), "b": np.ones((4, 3))})], 2)
    np.testing.assert_allclose(one[2]["a"], [0.5, 0.5])
    np.testing.assert_allclose(two[2]["b"], [0.5, 0.5])
    ((_, _, weights),) = accumulated([(np.zeros(2), np.zeros(2), np.zeros(2))], 1)
    np.testing.assert_array_equal(weights, [0, 0])


def test_what_cannot_be_cut_or_summed_is_refused():
    with pytest.raises(ValueError, match="multiple of 3 rows.*Received: 4 rows"):
        next(accumulated([(np.zeros(4), np.zeros(4))], 3))
    with pytest.raises(ValueError, match=r"labels of shape \(4, 2\) and no weights"):
        next(accumulated([(np.zeros(4), np.zeros((4, 2), "int32"))], 2))
    with pytest.raises(ValueError, match="Received: 'mse'"):
        summed([keras.losses.MeanSquaredError(), "mse"])


def test_L7_a_loss_is_divided_by_predictions_not_by_slots_and_by_nothing_where_there_are_none():
    (loss,) = MaskedLM(toy.backbone(), next_sentence=False).default_compile()["loss"].values()
    labels, logits = np.ones((1, 4), "int32"), np.zeros((1, 4, 5), "float32")
    weights = np.array([[1, 0, 1, 0]], "float32")
    np.testing.assert_allclose(float(loss(labels, logits, weights)), np.log(5), rtol=1e-6)
    assert float(loss(labels, logits, 0 * weights)) == 0.0
    ((_, _, shares),) = accumulated([(labels, labels, weights)], 1)
    np.testing.assert_allclose(float(summed(loss)(labels, logits, shares)), np.log(5), rtol=1e-6)


def test_R6_any_number_of_processes_goes_on_with_the_same_rows():
    x, weights = np.arange(8), np.array([1.0, 0, 3, 0, 1, 1, 1, 1], "float32")
    for number in (1, 2, 4):
        parts = [next(part_of([({"ids": x}, x)], number, i)) for i in range(number)]
        np.testing.assert_array_equal(np.concatenate([p[0]["ids"] for p in parts]), x)
        found = [list(shared([(x, x, weights)], 2, number, i, number)) for i in range(number)]
        # Micro-batch k of all processes together is part k of the batch, with the same shares.
        for k, (rows, _, shares) in enumerate(accumulated([(x, x, weights)], 2)):
            np.testing.assert_array_equal(np.concatenate([f[k][0] for f in found]), rows)
            together = np.concatenate([f[k][2] for f in found])
            np.testing.assert_allclose(together, shares * number, rtol=1e-6)
