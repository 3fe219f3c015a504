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


def check_layer(layer, *inputs, tolerance=1e-5, unmoved=()):
    """Build, eager call, symbolic call with unknown sizes, serialisation and gradients by `fit`.

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
    feed = list(inputs) if len(inputs) > 1 else inputs[0]
    np.testing.assert_allclose(model.predict(feed, verbose=0), expected, atol=tolerance)

    twin = type(layer).from_config(layer.get_config())
    twin(*inputs)
    assert [w.shape for w in twin.weights] == [w.shape for w in layer.weights]
    twin.set_weights(layer.get_weights())
    np.testing.assert_allclose(to_numpy(twin(*inputs)), expected, atol=tolerance)

    for policy in ("mixed_bfloat16", "mixed_float16"):
        half = type(layer).from_config({**layer.get_config(), "dtype": policy})
        output = half(*inputs)
        assert keras.backend.standardize_dtype(output.dtype) == half.compute_dtype
        assert np.isfinite(to_numpy(output)).all()

    model.compile("sgd", "mse")
    before = [np.array(w) for w in layer.get_weights()]
    model.fit(feed, np.ones_like(expected), verbose=0)
    for weight, old, new in zip(layer.weights, before, layer.get_weights(), strict=True):
        assert weight.path.endswith(unmoved or "-") or not np.array_equal(old, new), weight.path
    layer.set_weights(before)
    return expected
