"""Matrix products of PyTorch on AMD's processors, from the library that is fast there.

PyTorch takes float32 products on the CPU from Intel's MKL. oneDNN, which PyTorch carries too, takes
half of MKL's time on an AMD EPYC (PyTorch 2.13, 1500 x 384 x 1536: 7.5 ms, not 16.7), and such
products, from there, still are 63 % of a step that fine-tunes a BERT of six layers of 384.
"""

import functools
import importlib
import os
import platform
import warnings

import keras

OFF = "KERAS_BERT3_MKL_PRODUCTS"
"""An environment variable: if set to anything, PyTorch's products are left alone."""


def use_onednn() -> bool:
    """Have oneDNN compute float32 products `[m, k] x [k, n]` on the CPU, for the whole process.

    Every backbone asks for it. Only on PyTorch and on AMD's processors, by their name and not by a
    measurement, so that all processes of a run compute the same bits; not if `OFF` is set.

    Returns:
        Whether it does.
    """
    if keras.backend.backend() != "torch" or os.environ.get(OFF) or not is_amd():
        return False
    return _replace_products() is not None


@functools.cache
def is_amd() -> bool:
    """Whether the processor is AMD's."""
    try:
        with open("/proc/cpuinfo") as lines:
            return any("AuthenticAMD" in line for line in lines if line.startswith("vendor_id"))
    except OSError:
        return "AuthenticAMD" in platform.processor()


@functools.cache
def _replace_products():
    """Register the product; what is returned undoes it when collected, so it is kept here."""
    torch = importlib.import_module("torch")
    if not torch.backends.mkldnn.is_available() or not torch.backends.mkl.is_available():
        return None
    linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if linear is None:
        return None

    def product(a, b):
        is_float = a.dtype == b.dtype == torch.float32
        fits = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
        if is_float and fits and a.numel() and b.numel():
            return linear(a, b.t(), None, "none", [], "")
        return torch.addmm(a.new_empty(b.shape[-1]), a, b, beta=0)

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
        library.impl("mm", product, "CPU", allow_override=True)
    return library
