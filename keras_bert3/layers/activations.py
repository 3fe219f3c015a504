"""GELU by its two names, since checkpoints differ in which one they were trained with."""

from collections.abc import Callable

import keras


def gelu_tanh(x):
    """GELU approximated as 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

    google-research/bert and GPT-1 were trained with it. It differs from `gelu_erf` by at most
    4.73e-4 (at |x| = 2.70).
    """
    return keras.activations.gelu(x, approximate=True)


def gelu_erf(x):
    """Exact GELU, x times the normal distribution function (Hendrycks & Gimpel 2016).

    DeBERTa and most checkpoints trained with Hugging Face transformers use it.
    """
    return keras.activations.gelu(x, approximate=False)


_NAMED = {"gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf}


def get(name: str) -> Callable:
    """Return the activation called `name`: `gelu_tanh`, `gelu_erf` or a name Keras knows.

    Raises:
        ValueError: for `"gelu"`, which means tanh in one library and erf in another, and for
            names that nobody knows.
    """
    if name == "gelu":
        raise ValueError(
            "Expected `activation` to say which GELU is meant: 'gelu_tanh' (google-research/bert, "
            "GPT-1) or 'gelu_erf' (DeBERTa, Hugging Face). Received: activation='gelu'"
        )
    return _NAMED[name] if name in _NAMED else keras.activations.get(name)
