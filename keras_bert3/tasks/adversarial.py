"""Perturbed passes of any task over any backbone, for `compile(adversarial=...)`."""

import contextlib
from collections.abc import Callable, Iterator

from keras import ops

from keras_bert3.objectives.sift import shift
from keras_bert3.training.gradients import gradient


def adversarial_loss(task, x, logits, sample_weight=None):
    """Return the loss that `task.adversarial` adds in a training step: a float32 scalar.

    Args:
        task: a compiled `Task`, with `adversarial` (such as `SiFT`) and `adversarial_seed`.
        x: the inputs of the step, `token_ids` among them.
        logits: what the task gave for them.
        sample_weight: as of `fit`.
    """
    layer = embedded_layer(task.backbone)
    variables = [*task.trainable_variables, *task.non_trainable_variables]

    def forward(perturbation):
        with changed_input(layer, lambda hidden: shift(hidden, perturbation)):
            return task(x, training=True)

    return task.adversarial.loss(
        logits,
        forward,
        lambda function, at: gradient(function, at, variables),
        (*ops.shape(x["token_ids"]), task.backbone.token_embeddings.shape[-1]),
        task.adversarial_seed,
        sample_weight,
    )


def embedded_layer(backbone):
    """The layer that summed embeddings enter: their LayerNorm, or the first block (GPT-1).

    Raises:
        ValueError: for a backbone that has neither.
    """
    norm = getattr(getattr(backbone, "embeddings", None), "norm", None)
    blocks = getattr(backbone, "blocks", [])
    if norm is None and not blocks:
        raise ValueError(
            "Expected a backbone whose embeddings are normalised or enter a first block, for "
            f"adversarial training. Received: {type(backbone).__name__}"
        )
    return blocks[0] if norm is None else norm


@contextlib.contextmanager
def changed_input(layer, change: Callable) -> Iterator[None]:
    """While it lasts, let a layer see `change(inputs)` for its first argument.

    This is what a forward hook is in PyTorch: every task and backbone serves as it is.
    """
    call = layer.call

    def changed_call(inputs, *arguments, **keywords):
        return call(change(inputs), *arguments, **keywords)

    layer.call = changed_call
    try:
        yield
    finally:
        del layer.call
