"""Weights that outlive an error."""

import contextlib


@contextlib.contextmanager
def kept_weights(model):
    """Give a model its weights back if the body raises.

    On JAX, Keras takes the values out of a model for the time of `fit`, `evaluate` and `predict`;
    an error, such as a text that is none, would leave the model without any. Values of the last
    finished step are put back, or else those from before the body.
    """
    optimizer = getattr(model, "optimizer", None)
    variables = [*model.variables, *getattr(optimizer, "variables", [])]
    before = [getattr(variable, "_value", None) for variable in variables]
    try:
        yield
    except BaseException:
        getattr(model, "jax_state_sync", lambda: None)()
        for variable, value in zip(variables, before, strict=True):
            if getattr(variable, "_value", value) is None:
                variable._value = value
        raise
