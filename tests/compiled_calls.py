"""A backbone or task called by itself as one program.

JAX compiles every operation of a call outside `jit` as a program of its own, sixty for the smallest
BERT, each for 25 ms; one program of the whole takes a quarter of that.
"""

import functools
import weakref

import jax
import keras
from keras.src.backend.common.stateless_scope import in_stateless_scope

_programs = weakref.WeakKeyDictionary()


def is_array(leaf) -> bool:
    """Whether a program takes it as an argument, not as part of itself."""
    return hasattr(leaf, "shape")


def as_one_program(call):
    """Wrap `__call__`; what is being traced already is left alone."""

    @functools.wraps(call)
    def wrapped(model, *args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs))
        traced = any(isinstance(leaf, keras.KerasTensor | jax.core.Tracer) for leaf in leaves)
        if traced or in_stateless_scope() or not model.variables:
            return call(model, *args, **kwargs)
        constants = tuple(None if is_array(leaf) else leaf for leaf in leaves)
        programs = _programs.setdefault(model, {})
        key = structure, constants
        if key not in programs:
            programs[key] = jax.jit(functools.partial(_run, call, model, structure, constants))
        arrays = [leaf if is_array(leaf) else None for leaf in leaves]
        outputs, values = programs[key]([v.value for v in model.variables], arrays)
        for variable, value in zip(model.variables, values, strict=True):
            if value is not None:
                variable.assign(value)
        return outputs

    return wrapped


def _run(call, model, structure, constants, values, arrays):
    """Call the model with these values of its variables; also return those that it changed."""
    leaves = [c if a is None else a for c, a in zip(constants, arrays, strict=True)]
    args, kwargs = jax.tree.unflatten(structure, leaves)
    with keras.StatelessScope(list(zip(model.variables, values, strict=True))) as scope:
        outputs = call(model, *args, **kwargs)
    current = [scope.get_current_value(variable) for variable in model.variables]
    changed = [None if a is b else a for a, b in zip(current, values, strict=True)]
    return outputs, changed
