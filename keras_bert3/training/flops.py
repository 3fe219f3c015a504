"""How much of a device's arithmetic a training step uses (Chowdhery et al. 2022, appendix B).

Counted are the products of matrices that the mathematics asks for, forward and twice backward, not
what is computed again for the sake of memory:

    flops of a token = 6 N + L 12 t w + s 6 v w

for N weights in the matrices of L blocks of width w, t tokens in a row, of which a share s is
predicted from a vocabulary of v.
"""

import importlib

import keras

# Dense bfloat16 or float16 arithmetic in 1e12 operations a second, not compared with the makers'
# data sheets: check a row before its utilisation is quoted. The first name that is part of a
# device's counts. A device of JAX is half a chip on TPU v2 and v3.
PEAKS = {
    "h100 pcie": 756,
    "h100 nvl": 835,
    "h100": 989,
    "h200": 989,
    "b200": 2250,
    "a100": 312,
    "v100": 125,
    "l40s": 362,
    "l4": 121,
    "a10g": 70,
    "a10": 125,
    "t4": 65,
    "rtx 4090": 165,
    "rtx 3090": 71,
    "tpu v2": 22.5,
    "tpu v3": 61.5,
    "tpu v4": 275,
    "tpu v5 lite": 197,
    "tpu v5e": 197,
    "tpu v5p": 459,
    "tpu v5": 459,
    "tpu v6": 918,
}


def flops_per_token(model, sequence_length: int, predicted: float = 1.0) -> float:
    """Return the operations that training takes for a token of a row, padding included.

    Args:
        model: a task or backbone; matrices of its `blocks` count, and its token table as output.
        sequence_length: t.
        predicted: s, 1 for a language model, some 0.15 for a masked one.

    Returns:
        The number; 0 for a model without blocks.
    """
    total = 0.0
    for layer in model._flatten_layers():
        for block in getattr(layer, "blocks", ()):
            matrices = [w for w in block.trainable_variables if len(w.shape) == 2]
            total += 6.0 * sum(w.shape[0] * w.shape[1] for w in matrices)
            total += 12.0 * sequence_length * layer.hidden_dim
        if hasattr(layer, "token_embeddings") and hasattr(layer, "blocks"):
            rows, width = layer.token_embeddings.shape
            total += 6.0 * predicted * rows * width
    return total


def device_name() -> str:
    """The kind of device that this backend computes on, in its own words."""
    backend = keras.backend.backend()
    library = importlib.import_module(backend)
    if backend == "jax":
        return library.devices()[0].device_kind
    if backend == "torch":
        return library.cuda.get_device_name() if library.cuda.is_available() else "cpu"
    found = library.config.list_physical_devices("GPU")
    details = library.config.experimental.get_device_details(found[0]) if found else {}
    return details.get("device_name", "cpu")


def peak_of(name: str) -> float | None:
    """Operations a second that a device of this name can do at most; None where nobody knows.

    Example: `peak_of("NVIDIA A100-SXM4-40GB")` is 3.12e14.
    """
    known = [peak for part, peak in PEAKS.items() if part in name.lower()]
    return known[0] * 1e12 if known else None


def device_count() -> int:
    """Devices that share a step with this one, itself included, as far as this process knows."""
    if keras.backend.backend() == "jax":
        mesh = getattr(keras.distribution.distribution(), "device_mesh", None)
        return int(mesh.devices.size) if mesh is not None else 1
    return importlib.import_module("keras_bert3.training.replicas").count()
