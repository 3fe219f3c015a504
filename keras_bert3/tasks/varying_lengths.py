"""Batches of rows of varying lengths, on TensorFlow."""

import importlib
from typing import Any

import keras


def of_varying_lengths(batches, class_weight=None, shuffle=False):
    """Return what Keras makes of a `PyDataset` on TensorFlow, with the lengths of rows left open.

    Keras takes what its first two batches have in common for the shape of all. Two batches of 32
    tokens, and one of 48 after them, would end `fit` with a TypeError of TensorFlow's. Here every
    axis as long as a row of one of the first batch's inputs may be of another length in the next.

    Args:
        batches: anything that `fit` takes; what is no `PyDataset` is returned as it is.
        class_weight: as in `fit`, which does not add it to what is returned here.
        shuffle: as in `fit`.
    """
    is_dataset = isinstance(batches, keras.utils.PyDataset) and batches.num_batches != 0
    if keras.backend.backend() != "tensorflow" or not is_dataset:
        return batches
    place: Any = importlib.import_module("keras.src.trainers.data_adapters.py_dataset_adapter")
    adapter = place.PyDatasetAdapter(batches, class_weight=class_weight, shuffle=shuffle)
    first = adapter._standardize_batch(batches[0])
    spec = place.data_adapter_utils.get_tensor_spec([first])
    inputs = spec[0] if isinstance(spec, tuple) else spec
    lengths = {one.shape[-1] for one in keras.tree.flatten(inputs) if _is_dense(one)}

    def opened(one):
        shape = [None if size in lengths else size for size in one.shape]
        return type(one)(shape, one.dtype)

    adapter._output_signature = keras.tree.map_structure(
        lambda one: opened(one) if _is_dense(one) else one, spec
    )
    return adapter


def _is_dense(spec) -> bool:
    return type(spec).__name__ == "TensorSpec"
