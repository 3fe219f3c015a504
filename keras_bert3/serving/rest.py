"""TensorFlow Serving's REST format: JSON to arrays and back.

The format is described in tensorflow/serving `g3doc/api_rest.md`. Rows (`instances`, answered by
`predictions`) or columns (`inputs`, answered by `outputs`); an input or output that is the only one
needs no name.
"""

import base64
import json
from typing import Any

import numpy as np

from keras_bert3.serving.library import CODES, ServingError
from keras_bert3.serving.session import Signature, TensorInfo


def parse_request(body: bytes) -> dict[str, Any]:
    """Read a request's JSON object.

    Raises:
        ServingError: INVALID_ARGUMENT where it is none, or is not UTF-8.
    """
    try:
        request = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _invalid(f"Expected a JSON object in UTF-8. Received: {error}") from error
    if not isinstance(request, dict) or ("instances" in request) == ("inputs" in request):
        raise _invalid(
            "Expected a JSON object with either 'instances' or 'inputs'. Received: other"
        )
    return request


def read_inputs(request: dict[str, Any], signature: Signature) -> dict[str, np.ndarray]:
    """Turn rows or columns into an array for each input.

    Raises:
        ServingError: INVALID_ARGUMENT, naming what is missing, unknown, ragged or of another kind.
    """
    wanted = signature.inputs
    if "inputs" in request:
        given = request["inputs"]
        columns = given if _is_named(given, wanted) else {next(iter(wanted)): given}
        _check_names(columns, wanted)
    else:
        columns = _columns(request["instances"], wanted)
    return {name: _array(name, value, wanted[name]) for name, value in columns.items()}


def write_outputs(outputs: dict[str, np.ndarray], as_rows: bool) -> dict[str, Any]:
    """Turn arrays into rows or columns; the name of an only output is left out."""
    named = {name: _plain(value) for name, value in outputs.items()}
    only = next(iter(named)) if len(named) == 1 else None
    if not as_rows:
        return {"outputs": named if only is None else named[only]}
    if only is not None:
        return {"predictions": named[only]}
    rows = zip(*named.values(), strict=True)
    return {"predictions": [dict(zip(named, row, strict=True)) for row in rows]}


def _is_named(given: Any, wanted: dict[str, TensorInfo]) -> bool:
    is_bytes = isinstance(given, dict) and set(given) == {"b64"} and "b64" not in wanted
    return len(wanted) > 1 or (isinstance(given, dict) and not is_bytes)


def _columns(instances: Any, wanted: dict[str, TensorInfo]) -> dict[str, list]:
    """Rows to columns."""
    if not isinstance(instances, list) or not instances:
        raise _invalid("Expected 'instances' as a list of at least one row. Received: other")
    only = next(iter(wanted))
    rows = [row if _is_named(row, wanted) else {only: row} for row in instances]
    for number, row in enumerate(rows):
        _check_names(row, wanted, f" in row {number}")
    return {name: [row[name] for row in rows] for name in wanted}


def _check_names(given: Any, wanted: dict[str, TensorInfo], where: str = "") -> None:
    if not isinstance(given, dict) or set(given) != set(wanted):
        names = sorted(given) if isinstance(given, dict) else type(given).__name__
        raise _invalid(f"Expected inputs {sorted(wanted)}. Received: {names}{where}")


def _array(name: str, value: Any, info: TensorInfo) -> np.ndarray:
    """Turn nested lists into an array of an input's dtype."""
    try:
        if info.dtype == "string":
            return _text_array(value)
        array = np.array(value)
        if array.size and array.dtype.kind not in ("iu" if info.dtype.startswith("int") else "iuf"):
            raise ValueError(f"{array.dtype} values")
        limits = np.iinfo(info.dtype) if info.dtype.startswith("int") else None
        if limits and array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise ValueError("a number out of range")
        return array.astype(info.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise _invalid(
            f"Expected {name!r} as {info.dtype} of {len(info.shape)} dimensions, all rows of one "
            f"length. Received: {str(error).splitlines()[0]}"
        ) from error


def _text_array(value: Any) -> np.ndarray:
    """Nested lists of strings, or of `{"b64": ...}`, as an object array of bytes."""
    shape, probe = [], value
    while isinstance(probe, list):
        shape.append(len(probe))
        probe = probe[0] if probe else None
    flat = [value]
    for size in shape:
        if any(not isinstance(part, list) or len(part) != size for part in flat):
            raise ValueError("lists of different lengths")
        flat = [item for part in flat for item in part]
    array = np.empty(len(flat), object)
    array[:] = [_text(item) for item in flat]
    return array.reshape(shape)


def _text(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode("utf-8")
    if isinstance(item, dict) and set(item) == {"b64"}:
        return base64.b64decode(item["b64"], validate=True)
    raise ValueError(f"{type(item).__name__} instead of a string")


def _plain(array: np.ndarray) -> list:
    """An array as nested lists of what JSON knows."""
    if array.dtype != object:
        return array.tolist()
    flat = [value.decode("utf-8", "replace") for value in array.ravel()]
    return np.array(flat, object).reshape(array.shape).tolist()


def _invalid(message: str) -> ServingError:
    return ServingError(CODES["INVALID_ARGUMENT"], message)
