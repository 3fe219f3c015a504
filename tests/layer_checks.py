"""What every layer must do, checked in one place."""

import keras
import numpy as np
from keras import ops


def to_numpy(x):
    """A float32 or integer array of any tensor."""
    x = ops.convert_to_tensor(x)
    if "float" in keras.backend.standardize_dtype(x.dtype):
        x = ops.cast(x, "float32")
    return ops.convert_to_numpy(x)


def compiled(call, owner=None):
    """Give `call` as one program on JAX, which else compiles each operation by itself.

    Weights are arguments of the program, so that what is assigned later is seen. Random states
    stay as they were, and values of ids are not looked at: see one call without this.

    Args:
        call: a built layer, or a function of arrays and, by name, of choices.
        owner: the built layer whose weights the function reads.
    """
    if keras.backend.backend() != "jax":
        return call
    import jax

    owner = call if owner is None else owner

    def run(choices, values, args, arrays):
        with keras.StatelessScope(list(zip(owner.variables, values, strict=True))):
            return call(*args, **arrays, **dict(choices))

    program = jax.jit(run, static_argnums=0)

    def called(*args, **named):
        choices = {n: v for n, v in named.items() if v is None or isinstance(v, bool | str)}
        arrays = {n: v for n, v in named.items() if n not in choices}
        values = [variable.value for variable in owner.variables]
        return program(tuple(choices.items()), values, args, arrays)

    return called


def call_with_unknown_sizes(model, inputs):
    """Call a model of symbolic inputs; TensorFlow traces it with no size but the last known."""
    if keras.backend.backend() != "tensorflow":
        return compiled(model)(inputs)
    import tensorflow as tf

    def unknown(x):
        last = x.shape[-1:] if x.dtype.kind == "f" else (None,)
        return tf.TensorSpec((None,) * (x.ndim - 1) + last, x.dtype)

    signature = [keras.tree.map_structure(unknown, inputs)]
    return tf.function(lambda x: model(x), input_signature=signature)(inputs)


def gradients(layer, loss):
    """Give the gradient of `loss()`, a scalar, by each trainable weight of a built layer."""
    weights = layer.trainable_variables
    match keras.backend.backend():
        case "jax":
            import jax

            def function(values, rest):
                pairs = zip(
                    (*weights, *layer.non_trainable_variables), (*values, *rest), strict=True
                )
                with keras.StatelessScope(list(pairs)):
                    return loss()

            rest = [v.value for v in layer.non_trainable_variables]
            found = jax.jit(jax.grad(function))([w.value for w in weights], rest)
        case "tensorflow":
            import tensorflow as tf

            with tf.GradientTape() as tape:
                value = loss()
            found = tape.gradient(value, [w.value for w in weights])
        case _:
            import torch

            found = torch.autograd.grad(loss(), [w.value for w in weights], allow_unused=True)
    return [
        np.zeros(w.shape) if g is None else to_numpy(g) for w, g in zip(weights, found, strict=True)
    ]


def square_error(outputs, target=1.0):
    """Mean square distance from `target`, in float32."""
    return ops.mean(ops.square(ops.cast(outputs, "float32") - target))


def assert_training_moves(layer, loss, unmoved=()):
    """A step of 0.01 along the gradient moves every weight, but those whose path ends so."""
    for weight, gradient in zip(layer.trainable_variables, gradients(layer, loss), strict=True):
        old = to_numpy(weight)
        stays = np.array_equal(old, old - np.float32(0.01) * gradient)
        assert not stays or weight.path.endswith(unmoved or "-"), weight.path


def check_layer(layer, *inputs, tolerance=1e-5, unmoved=()):
    """Build, eager call, symbolic call with unknown sizes, serialisation and gradients.

    `inputs` are arrays, the call's positional arguments; `unmoved` are the ends of paths of weights
    whose gradient is zero.
    """
    expected = to_numpy(layer(*inputs))
    symbolic = [
        keras.Input(
            (None,) * (x.ndim - 2) + x.shape[-1:] if x.dtype.kind == "f" else (None,),
            dtype=str(x.dtype),
        )
        for x in inputs
    ]
    model = keras.Model(symbolic, layer(*symbolic))
    received = call_with_unknown_sizes(model, list(inputs))
    np.testing.assert_allclose(to_numpy(received), expected, atol=tolerance)

    twin = type(layer).from_config(layer.get_config())
    twin(*symbolic)
    assert [w.shape for w in twin.weights] == [w.shape for w in layer.weights]
    twin.set_weights(layer.get_weights())
    np.testing.assert_allclose(to_numpy(twin(*inputs)), expected, atol=tolerance)

    for policy in ("mixed_bfloat16", "mixed_float16"):
        half = type(layer).from_config({**layer.get_config(), "dtype": policy})
        half(*symbolic)
        output = compiled(half)(*inputs)
        assert keras.backend.standardize_dtype(output.dtype) == half.compute_dtype
        assert np.isfinite(to_numpy(output)).all()

    assert_training_moves(layer, lambda: square_error(layer(*inputs)), unmoved)
    return expected
