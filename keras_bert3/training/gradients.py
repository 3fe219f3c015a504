"""Gradients with respect to a tensor: what Keras leaves to its backends."""

import importlib

import keras


def gradient(function, at, variables=()):
    """Return the gradient of a function of one tensor, inside or outside of a training step.

    No gradient reaches weights, and what the function assigns stays assigned.

    Args:
        function: from a float tensor to a scalar.
        at: the tensor.
        variables: the Keras variables that the function reads or assigns, such as weights and
            states of random generators.

    Returns:
        A tensor of the shape of `at`, a constant to any gradient taken around it.

    Example: `gradient(lambda x: ops.sum(x * x), ops.ones(3))` is `[2, 2, 2]`.
    """
    return _OF_BACKEND[keras.backend.backend()](function, at, variables)


def _with_tensorflow(function, at, variables):
    tf = importlib.import_module("tensorflow")
    at = tf.convert_to_tensor(at)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(at)
        value = function(at)
    return tf.stop_gradient(tape.gradient(value, at))


def _with_jax(function, at, variables):
    jax = importlib.import_module("jax")

    def value_and_states(tensor):
        # A scope of its own: what it assigns must not outlive the trace, so it is handed out.
        current = [(variable, variable.value) for variable in variables]
        with keras.StatelessScope(state_mapping=current) as scope:
            value = function(tensor)
        states = {
            place: scope.get_current_value(variable)
            for place, (variable, before) in enumerate(current)
            if scope.get_current_value(variable) is not before
        }
        return value, states

    found, states = jax.grad(value_and_states, has_aux=True)(at)
    for place, state in states.items():
        variables[place].assign(state)
    return jax.lax.stop_gradient(found)


def _with_torch(function, at, variables):
    torch = importlib.import_module("torch")
    with torch.enable_grad():
        at = at.detach().requires_grad_(True)
        (found,) = torch.autograd.grad(function(at), at)
    return found.detach()


_OF_BACKEND = {"tensorflow": _with_tensorflow, "jax": _with_jax, "torch": _with_torch}
