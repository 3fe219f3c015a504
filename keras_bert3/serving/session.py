"""A SavedModel loaded and run through the C library, as TensorFlow Serving does it."""

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert3.serving import library as tf_library
from keras_bert3.serving.library import CODES, Output, ServingError, Status, library
from keras_bert3.serving.wire import fields, varint


class TensorInfo(NamedTuple):
    """An input or output of a signature.

    Args:
        tensor: its name in the graph.
        dtype: such as "int32" or "string".
        shape: sizes, -1 for any.
    """

    tensor: str
    dtype: str
    shape: tuple[int, ...]


class Signature(NamedTuple):
    """Named inputs and outputs."""

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]


class SavedModelSession:
    """A loaded SavedModel.

    Safe to be used from several threads at once; as many runs as `threads` go on at a time, and the
    others wait, so that memory does not depend on how many ask.

    Args:
        folder: of one version, with `saved_model.pb`.
        threads: for one operation, and between operations; as many as processors when None.

    Raises:
        ServingError: if TensorFlow cannot load it, for instance because it needs an operation that
            is not registered.

    Example:
        >>> session = SavedModelSession("saved_models/mnli/1")
        >>> session.run("serving_default", {"text": np.array([b"a joy"], object)})["label"]
        array([b'positive'], dtype=object)
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        if not (Path(folder) / "saved_model.pb").is_file():
            raise ServingError(CODES["NOT_FOUND"], f"Expected a SavedModel. Received: '{folder}'")
        self._turns = threading.BoundedSemaphore(threads or os.cpu_count() or 1)
        self._graph = library().TF_NewGraph()
        options, meta = library().TF_NewSessionOptions(), library().TF_NewBuffer()
        try:
            with Status() as status:
                if threads is not None:
                    config = varint(2 << 3) + varint(threads) + varint(5 << 3) + varint(threads)
                    library().TF_SetConfig(options, config, len(config), status.pointer)
                    status.check()
                tags = (ctypes.c_char_p * 1)(b"serve")
                self._session = library().TF_LoadSessionFromSavedModel(
                    options, None, str(folder).encode(), tags, 1, self._graph, meta, status.pointer
                )
                status.check()
            self.definitions = _definitions(_content(meta))
            self.signatures = {n: _signature(content) for n, content in self.definitions.items()}
        except ServingError:
            library().TF_DeleteGraph(self._graph)
            raise
        finally:
            library().TF_DeleteSessionOptions(options)
            library().TF_DeleteBuffer(meta)

    def run(
        self,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Run one signature.

        Args:
            signature: its name.
            inputs: an array for each of its inputs; strings as object arrays of bytes.
            outputs: names of the outputs to compute; all when None.

        Raises:
            ServingError: for an unknown signature, inputs that are not those of the signature, or
                whatever the graph itself refuses.
        """
        chosen = self.signature(signature)
        check_inputs(chosen, inputs)
        names = list(chosen.outputs if outputs is None else outputs)
        unknown = sorted(set(names) - set(chosen.outputs))
        if unknown:
            raise ServingError(
                CODES["INVALID_ARGUMENT"],
                f"Expected outputs among {sorted(chosen.outputs)}. Received: {unknown}",
            )
        feeds = [self._place(chosen.inputs[name].tensor) for name in inputs]
        fetches = [self._place(chosen.outputs[name].tensor) for name in names]
        tensors = [tf_library.to_tensor(value) for value in inputs.values()]
        try:
            with self._turns:
                found = self._run(feeds, tensors, fetches)
        finally:
            for tensor in tensors:
                tf_library.free_input(tensor)
        try:
            return dict(zip(names, map(tf_library.to_array, found), strict=True))
        finally:
            for tensor in found:
                library().TF_DeleteTensor(tensor)

    def signature(self, name: str) -> Signature:
        """Find a signature; "" means `serving_default`."""
        found = self.signatures.get(name or "serving_default")
        if found is None:
            raise ServingError(
                CODES["FAILED_PRECONDITION"],
                f"Expected a signature among {sorted(self.signatures)}. Received: {name!r}",
            )
        return found

    def _place(self, tensor: str) -> Output:
        operation, _, index = tensor.partition(":")
        found = library().TF_GraphOperationByName(self._graph, operation.encode())
        return Output(found, int(index or 0))

    def _run(self, feeds, tensors, fetches) -> list:
        results = (ctypes.c_void_p * len(fetches))()
        with Status() as status:
            library().TF_SessionRun(
                self._session,
                None,
                (Output * len(feeds))(*feeds),
                (ctypes.c_void_p * len(tensors))(*tensors),
                len(feeds),
                (Output * len(fetches))(*fetches),
                results,
                len(fetches),
                None,
                0,
                None,
                status.pointer,
            )
            status.check()
        return list(results)

    def close(self) -> None:
        """Free the model; no call may be under way."""
        with Status() as status:
            library().TF_CloseSession(self._session, status.pointer)
            library().TF_DeleteSession(self._session, status.pointer)
        library().TF_DeleteGraph(self._graph)


def check_inputs(signature: Signature, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuse other inputs than a signature's, in words.

    Raises:
        ServingError: INVALID_ARGUMENT, for what is missing, unknown, or of another dtype or rank.
    """
    wanted, code = signature.inputs, CODES["INVALID_ARGUMENT"]
    if set(inputs) != set(wanted):
        raise ServingError(code, f"Expected inputs {sorted(wanted)}. Received: {sorted(inputs)}")
    for name, value in inputs.items():
        info = wanted[name]
        dtype = "string" if value.dtype.kind in "OSU" else value.dtype.name
        if dtype != info.dtype or value.ndim != len(info.shape):
            raise ServingError(
                code,
                f"Expected {name!r} as {info.dtype} of {len(info.shape)} dimensions. "
                f"Received: {dtype} of shape {list(value.shape)}",
            )


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _content(buffer) -> bytes:
    found = ctypes.cast(buffer, ctypes.POINTER(_Buffer)).contents
    return ctypes.string_at(found.data, found.length)


def _definitions(meta_graph: bytes) -> dict[str, bytes]:
    """Find the SignatureDefs of a MetaGraphDef (tensorflow/core/protobuf/meta_graph.proto)."""
    entries = [_entry(content) for number, content in fields(meta_graph) if number == 5]
    return {name: content for name, content in entries if name != "__saved_model_init_op"}


def _signature(definition: bytes) -> Signature:
    """Read a SignatureDef."""
    parts: dict[int, dict[str, TensorInfo]] = {1: {}, 2: {}}
    for side, content in fields(definition):
        if side in parts:
            name, info = _entry(content)
            parts[side][name] = _tensor_info(info)
    return Signature(parts[1], parts[2])


def _entry(content: bytes) -> tuple[str, bytes]:
    """Read an entry of a map: a key and a message."""
    found = dict(fields(content))
    return found[1].decode("utf-8"), found.get(2, b"")


def _tensor_info(content: bytes) -> TensorInfo:
    found = dict(fields(content))
    dims = [dict(fields(dim)).get(1, 0) for n, dim in fields(found.get(3, b"")) if n == 2]
    shape = tuple(size - 2**64 if size >= 2**63 else size for size in dims)
    return TensorInfo(found[1].decode("utf-8"), tf_library.DTYPES[found[2]], shape)
