"""Models whose weights have no values until a checkpoint gives them.

Drawing the weights of BERT base takes longer than reading them from a disk, and even zeros cost a
pass over memory. Inside a `keras.StatelessScope` Keras notes an initialiser for each weight and
puts the drawing off; here the values of a checkpoint take the initialiser's place. What is given
none is drawn after all.
"""

import concurrent.futures
import contextlib
import importlib
import os
from collections.abc import Callable, Iterator

import keras
import numpy as np


@contextlib.contextmanager
def blank(construct: Callable) -> Iterator:
    """Construct a model whose weights get their values when the body ends.

    Each weight takes the value it was given by `give`, or else its initialiser draws one.

    Args:
        construct: a function without arguments that returns a built layer.
    """
    try:
        with without_values():
            layer = construct()
        yield layer
        settle(layer)
    except BaseException:
        _forget_what_waits()
        raise


def _forget_what_waits() -> None:
    """Leave the weights of a model that nobody will see without values.

    Keras would go on trying to draw them whenever a scope ends, and would fail each time on those
    that have a value: no model could be loaded any more.
    """
    state = importlib.import_module("keras.src.backend.common.global_state")
    state.set_global_attribute("uninitialized_variables", [])


def without_values() -> keras.StatelessScope:
    """A scope whose new weights wait for their values until `blank` ends around it."""
    return keras.StatelessScope(initialize_variables=False)


def give(variable: keras.Variable, value: np.ndarray) -> None:
    """Set a variable's value; one without a value yet takes it without a copy where it can.

    Args:
        variable: of a blank model, or of any other.
        value: of its shape, in any dtype. On PyTorch the variable may go on using its memory.
    """
    if is_blank(variable):
        variable._initializer = _Given(value, variable.dtype)
    else:
        variable.assign(value)


class _Given:
    """An initialiser that has been told the value."""

    def __init__(self, value: np.ndarray, dtype: str):
        self.value = value
        self.dtype = dtype

    def lay_out(self) -> None:
        """Bring the value into memory as the backend wants it; safe in a thread."""
        value = self.value
        if not (value.flags.c_contiguous or value.flags.f_contiguous):
            value = np.ascontiguousarray(value)
        if value.dtype.name == self.dtype == "float32":
            value = _TAKEN_OVER.get(keras.backend.backend(), lambda value: value)(value)
        self.value = keras.ops.convert_to_tensor(value, dtype=self.dtype)

    def __call__(self, shape, dtype=None):
        """Return the value; its shape and dtype are the variable's."""
        if isinstance(self.value, np.ndarray):
            self.lay_out()
        return self.value


def _to_torch(value: np.ndarray):
    """On the host a matrix stays as it stands, transposed or not, and so without a copy.

    An accelerator would keep its order and train more slowly for it.
    """
    import torch

    return torch.from_numpy(np.ascontiguousarray(value) if torch.cuda.is_available() else value)


def _to_jax(value: np.ndarray):
    """JAX transposes in blocks, where NumPy would go through memory column by column."""
    import jax

    return jax.device_put(value)


def _to_tensorflow(value: np.ndarray):
    """TensorFlow takes over an array of its own through DLPack, where it would copy any other."""
    import tensorflow as tf

    is_transposed = not value.flags.c_contiguous
    copy = _aligned_copy(value.T if is_transposed else value)
    tensor = tf.experimental.dlpack.from_dlpack(copy.__dlpack__())
    return tf.transpose(tensor) if is_transposed else tensor


_TAKEN_OVER = {"jax": _to_jax, "tensorflow": _to_tensorflow, "torch": _to_torch}


def _aligned_copy(value: np.ndarray, alignment: int = 64) -> np.ndarray:
    """Copy an array to an address that TensorFlow's kernels accept: they abort on any other."""
    memory = np.empty(value.nbytes + alignment, "uint8")
    start = -memory.ctypes.data % alignment
    copy = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def is_blank(variable: keras.Variable) -> bool:
    """Whether a variable has no value yet, and an initialiser that can be replaced.

    Where a version of Keras keeps neither here, weights are drawn and overwritten: slower, the
    same.
    """
    return getattr(variable, "_value", 0) is None and hasattr(variable, "_initializer")


def _lay_out(weight) -> None:
    """Make the value that a blank weight was given ready, if it was given one."""
    if is_blank(weight) and isinstance(weight._initializer, _Given):
        weight._initializer.lay_out()


def settle(layer, initializer: keras.initializers.Initializer | None = None) -> None:
    """Give every blank weight of a layer its value now.

    Args:
        layer: a blank layer.
        initializer: for the weights that were given none; their own when None.
    """
    if initializer is not None:
        for weight in layer.weights:
            if is_blank(weight) and not isinstance(weight._initializer, _Given):
                weight._initializer = initializer
    if keras.backend.backend() != "torch":  # which copies nothing
        with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            for _ in pool.map(_lay_out, layer.weights):
                pass
    with keras.StatelessScope():
        pass  # Keras initialises what is waiting where a scope ends
