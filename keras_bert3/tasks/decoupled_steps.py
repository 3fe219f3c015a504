"""Replaced-token detection, one network after the other, as microsoft/DeBERTa trains v3."""

import contextlib
from collections.abc import Iterator


def decouple(task) -> None:
    """Give generator and discriminator each the state of an optimiser of its own.

    `decoupled_step` does so itself; call it before a checkpoint is restored.

    Args:
        task: a compiled `ReplacedTokenDetection`; its generator is compiled with the paper's values
            where it is not.

    Raises:
        ValueError: with `sharing="shared"`, where both steps would train one table.

    Example:
        >>> decouple(task)
        >>> step, _ = checkpoints.restore(task)
    """
    if task.sharing == "shared":
        raise ValueError(
            "Expected sharing='disentangled' or 'separate' for decoupled steps. "
            "Received: sharing='shared'"
        )
    if not task.generator.compiled:
        task.generator.compile()
    task.generator.make_train_function()
    with _frozen(task.generator):
        task.make_train_function()


def decoupled_step(task, x, y, sample_weight=None):
    """Train the generator on a batch, then the discriminator on what it now fills in.

    Each has an optimiser of its own: `task.generator.compile(...)` and `task.compile(...)`. The
    generator runs twice, once to learn and once to sample.

    Args:
        task: see `decouple`.
        x: a batch of inputs.
        y: `{"masked_lm": hidden ids [b, p]}`.
        sample_weight: `{"masked_lm": [b, p]}`.

    Returns:
        A dict of the task's losses and metrics, running means since the last `reset_metrics`.

    Raises:
        ValueError: with `sharing="shared"`, and after joint steps; before anything is trained.
    """
    decouple(task)
    task.generator.train_on_batch(x, y, sample_weight)
    with _frozen(task.generator):
        return task.train_on_batch(x, y, sample_weight, return_dict=True)


@contextlib.contextmanager
def _frozen(model) -> Iterator[None]:
    """Train nothing of a model; what was not trained before is not afterwards."""
    frozen = [layer for layer in model._flatten_layers() if not layer.trainable]
    model.trainable = False
    try:
        yield
    finally:
        model.trainable = True
        for layer in frozen:
            layer.trainable = False
