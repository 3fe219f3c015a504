import keras
import numpy as np
import pytest

from keras_bert3.tasks.decoupled_steps import decouple, decoupled_step
from keras_bert3.training.checkpointing import Checkpoints, whole_value
from tests.tasks.test_replaced_token_detection import batch, make


def compiled():
    task = make()
    task.compile(keras.optimizers.Adam(1e-2))
    task.generator.compile(keras.optimizers.Adam(1e-2))
    return task


def everything(task):
    optimizers = (task.optimizer, task.generator.optimizer)
    return [
        np.array(whole_value(variable))
        for variable in [*task.variables, *(v for one in optimizers for v in one.variables)]
    ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A task after five decoupled steps: its results of each, its checkpoints, all it holds."""
    keras.utils.set_random_seed(1)
    task, checkpoints = compiled(), Checkpoints(tmp_path_factory.mktemp("run"))
    decouple(task)
    checkpoints.save(task, 0)
    results = []
    for step in range(1, 6):
        task.reset_metrics()
        results.append(decoupled_step(task, *batch()))
        if step == 2:
            checkpoints.save(task, step)
    return task, results, checkpoints, everything(task)


def test_each_network_is_trained_by_its_own_optimizer(trained):
    task, results, checkpoints, after = trained
    before = compiled()
    decouple(before)
    checkpoints.restore(before, step=0)
    parts = ("generator_head", "generator_backbone", "backbone", "replaced_token_head")
    for name in parts:
        pairs = zip(*(getattr(one, name).get_weights() for one in (before, task)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3, name
    trained = len(task.optimizer.variables) // 2, len(task.generator.optimizer.variables) // 2
    own = len(task.backbone.trainable_weights) + len(task.replaced_token_head.trainable_weights)
    assert trained == (own + 1, len(task.generator.trainable_weights) + 1)
    assert task.generator.trainable and not task.generator_backbone.relative_embeddings.trainable
    assert results[-1]["loss"] < results[0]["loss"]


def test_they_go_on_from_a_checkpoint_to_the_same_bits(trained):
    task, _, checkpoints, expected = trained
    assert checkpoints.restore(task)[0] == 2
    at_two = everything(task)
    assert any((a != b).any() for a, b in zip(at_two, expected, strict=True))
    for _ in range(3):
        decoupled_step(task, *batch())
    for one, other in zip(everything(task), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    twin = compiled()  # as another process has it
    decouple(twin)
    assert checkpoints.restore(twin)[0] == 2
    for one, other in zip(everything(twin), at_two, strict=True):
        np.testing.assert_array_equal(one, other)


def test_joint_steps_after_decoupled_ones_are_refused_and_the_reverse(trained):
    task = trained[0]
    with pytest.raises(ValueError, match="joint steps alone.*variables to train"):
        task.train_on_batch(*batch())
    joint = compiled()
    joint.optimizer.build(joint.trainable_variables)  # as a first joint step does
    before = everything(joint)
    with pytest.raises(ValueError, match="or decoupled ones alone"):
        decoupled_step(joint, *batch())
    assert all((a == b).all() for a, b in zip(before, everything(joint), strict=False))
    with pytest.raises(ValueError, match="Received: sharing='shared'"):
        decouple(make("shared"))
