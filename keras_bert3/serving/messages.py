"""The messages of TensorFlow Serving's gRPC interface, as far as prediction needs them.

Sources: tensorflow/serving `apis/predict.proto`, `model.proto`, `get_model_status.proto`,
`get_model_metadata.proto`, and tensorflow `core/framework/tensor.proto`. Numbers of fields are
theirs; the package tensorflow-serving-api reads and writes the same bytes.
"""

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from keras_bert3.serving.library import CODES, DTYPES, NUMBERS, ServingError
from keras_bert3.serving.wire import field, fields, number_field, read_varint

AVAILABLE = 30
"""ModelVersionStatus.State of a version that can be asked."""
LARGEST_MESSAGE = 16 * 2**20
"""Bytes of a request, and of a tensor that one value fills."""
BROKEN = (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, struct.error)
"""What reading bytes that are no such message may raise."""


class ModelSpec(NamedTuple):
    """Which model, version (the newest where None) and signature are meant."""

    name: str
    version: int | None = None
    signature: str = ""


class PredictRequest(NamedTuple):
    """What is asked: arrays by name, and which outputs are wanted (all where none is named)."""

    spec: ModelSpec
    inputs: dict[str, np.ndarray]
    outputs: tuple[str, ...] = ()


def write_predict_request(request: PredictRequest) -> bytes:
    """Write a PredictRequest."""
    outputs = b"".join(field(3, name) for name in request.outputs)
    return field(1, write_spec(request.spec)) + _write_tensors(2, request.inputs) + outputs


def read_predict_request(message: bytes) -> PredictRequest:
    """Read a PredictRequest.

    Raises:
        ServingError: INVALID_ARGUMENT where the bytes are none, or hold a dtype that no signature
            here has.
    """
    try:
        parts = list(fields(message))
        spec = next((read_spec(content) for number, content in parts if number == 1), ModelSpec(""))
        outputs = tuple(content.decode("utf-8") for number, content in parts if number == 3)
        return PredictRequest(spec, _read_tensors(2, parts), outputs)
    except BROKEN as error:
        raise ServingError(
            CODES["INVALID_ARGUMENT"], f"Expected a PredictRequest. Received: {error!r}"
        ) from error


def write_predict_response(spec: ModelSpec, outputs: dict[str, np.ndarray]) -> bytes:
    """Write a PredictResponse."""
    return _write_tensors(1, outputs) + field(2, write_spec(spec))


def read_predict_response(message: bytes) -> dict[str, np.ndarray]:
    """Read the outputs of a PredictResponse."""
    return _read_tensors(1, list(fields(message)))


def write_spec(spec: ModelSpec) -> bytes:
    """Write a ModelSpec."""
    version = b"" if spec.version is None else field(2, number_field(1, spec.version))
    return field(1, spec.name) + version + field(3, spec.signature)


def read_spec(message: bytes) -> ModelSpec:
    """Read a ModelSpec."""
    found = dict(fields(message))
    version = dict(fields(found[2])).get(1, 0) if 2 in found else None
    return ModelSpec(found.get(1, b"").decode("utf-8"), version, found.get(3, b"").decode("utf-8"))


def write_status(version: int) -> bytes:
    """Write a GetModelStatusResponse that says a version is available."""
    return field(1, number_field(1, version) + number_field(2, AVAILABLE) + field(3, b""))


def write_metadata(spec: ModelSpec, definitions: dict[str, bytes]) -> bytes:
    """Write a GetModelMetadataResponse with SignatureDefs that are bytes already."""
    entries = b"".join(field(1, field(1, k) + field(2, v)) for k, v in definitions.items())
    kind = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    packed = field(1, kind) + field(2, entries)
    return field(1, write_spec(spec)) + field(2, field(1, "signature_def") + field(2, packed))


def write_tensor(array: np.ndarray) -> bytes:
    """Write a TensorProto; strings are an object array of bytes or str."""
    is_text = array.dtype.kind in "OSU"
    dtype = NUMBERS["string" if is_text else array.dtype.name]
    shape = b"".join(field(2, number_field(1, size)) for size in array.shape)
    if is_text:
        content = b"".join(field(8, value) for value in array.ravel().tolist())
    else:
        content = field(4, np.ascontiguousarray(array).tobytes())
    return number_field(1, dtype) + field(2, shape) + content


def read_tensor(message: bytes) -> np.ndarray:
    """Read a TensorProto of numbers or strings."""
    parts: dict[int, list[Any]] = {}
    for number, content in fields(message):
        parts.setdefault(number, []).append(content)
    dtype = DTYPES[parts[1][0]]
    dims = [dict(fields(d)).get(1, 0) for n, d in fields(parts.get(2, [b""])[0]) if n == 2]
    if dtype == "string":
        flat = np.empty(len(parts.get(8, [])), object)
        flat[:] = parts.get(8, [])
    elif 4 in parts:
        flat = np.frombuffer(parts[4][0], dtype)
    else:
        flat = np.array(_numbers(parts), dtype)
    count = math.prod(dims)
    if flat.size == 1 and count != 1:  # one value may stand for all
        if count * flat.itemsize > LARGEST_MESSAGE:
            raise ValueError(f"one value for a tensor of shape {dims}")
        flat = np.repeat(flat, count)
    return flat.reshape(dims)


def _numbers(parts: dict[int, list[Any]]) -> list:
    """Values of `int_val`, `int64_val` and `float_val`, packed or not."""
    found: list = []
    for content in [*parts.get(7, []), *parts.get(10, [])]:
        place, packed = 0, content if isinstance(content, bytes) else b""
        found += [] if isinstance(content, bytes) else [_signed(content)]
        while place < len(packed):
            value, place = read_varint(packed, place)
            found.append(_signed(value))
    for content in parts.get(5, []):
        packed = struct.pack("<i", content) if isinstance(content, int) else content
        found += struct.unpack(f"<{len(packed) // 4}f", packed)
    return found


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _write_tensors(number: int, tensors: dict[str, np.ndarray]) -> bytes:
    entries = (field(1, name) + field(2, write_tensor(value)) for name, value in tensors.items())
    return b"".join(field(number, entry) for entry in entries)


def _read_tensors(number: int, parts: list) -> dict[str, np.ndarray]:
    entries = [dict(fields(content)) for found, content in parts if found == number]
    return {entry[1].decode("utf-8"): read_tensor(entry[2]) for entry in entries}
