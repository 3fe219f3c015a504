"""Memory for time: blocks keep their inputs alone and compute the rest again (Chen et al. 2016).

A block keeps some ten tensors of `[b, q, w]` and `[b, h, q, k]` for its gradient. Recomputed, it
keeps one of `[b, q, w]`, and runs forward twice: a third more arithmetic a step.
"""

import importlib

import keras
from keras import ops


def rematerialise(model) -> int:
    """Let the blocks of a model compute their insides again for the gradient, while training.

    Losses, gradients and random states are those without it: dropout draws once, and its masks
    come again from the same state.

    Args:
        model: a task or backbone; what has `blocks` in it, has them changed.

    Returns:
        How many blocks there are.

    Raises:
        ValueError: for a model without blocks.

    Example:
        >>> rematerialise(task)
        12
    """
    blocks = [b for layer in model._flatten_layers() for b in getattr(layer, "blocks", ())]
    for block in blocks:
        block.call = _recomputed(block, block.call)
    if not blocks:
        raise ValueError(f"Expected a model of Transformer blocks. Received: {model.name}")
    return len(blocks)


def _recomputed(block, call):
    """Give `call` of a block, as a function of tensors alone while training."""

    def wrapped(hidden, training=None, **given):
        if not training:
            return call(hidden, training=training, **given)
        arguments = {"hidden": hidden, **given}
        output, states = _call_again(block, call, arguments)
        for variable, state in zip(block.non_trainable_variables, states, strict=True):
            variable.assign(state)
        return output

    return wrapped


def _call_again(block, call, arguments):
    """The output of a block that `keras.remat` runs, and the random states after it."""
    weights, random = block.trainable_variables, block.non_trainable_variables
    before = _read(random)
    leaves = keras.tree.flatten(arguments)
    places = [i for i, leaf in enumerate(leaves) if _is_float(leaf)]

    def run(*tensors):
        values, inputs = tensors[: len(weights)], iter(tensors[len(weights) :])
        given = [next(inputs) if i in places else leaf for i, leaf in enumerate(leaves)]
        current = [*zip(weights, values, strict=True), *zip(random, before, strict=True)]
        with keras.StatelessScope(current) as scope:
            output = call(training=True, **keras.tree.pack_sequence_as(arguments, given))
        return output, [scope.get_current_value(variable) for variable in random]

    return keras.remat(run)(*_read(weights), *(leaves[i] for i in places))


def _is_float(leaf) -> bool:
    """Whether a gradient goes through it; the rest are constants of the function."""
    if not ops.is_tensor(leaf):
        return False
    return "float" in keras.backend.standardize_dtype(leaf.dtype)


def _read(variables):
    """Their values, in their own precision; sublayers cast them as they need."""
    common = importlib.import_module("keras.src.backend.common.variables")
    with common.AutocastScope(None):
        values = [variable.value for variable in variables]
    # A variable of TensorFlow would be read later, when it has changed.
    return [value.read_value() if hasattr(value, "read_value") else value for value in values]
