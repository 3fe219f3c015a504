"""Requests that a model answers before it is asked: TensorFlow Serving's warm-up records.

`assets.extra/tf_serving_warmup_requests` is a TFRecord file of PredictionLog messages; each is run
once when a version is loaded, and one that fails fails the version.
"""

import struct
from pathlib import Path

from keras_bert3.serving.messages import (
    PredictRequest,
    read_predict_request,
    write_predict_request,
)
from keras_bert3.serving.session import SavedModelSession
from keras_bert3.serving.wire import field, fields

FILE = Path("assets.extra") / "tf_serving_warmup_requests"
_PREDICT_LOG = 6


def replay(session: SavedModelSession, version: Path) -> int:
    """Run the records of a version; return how many there were.

    Raises:
        ServingError: if one of them fails.
    """
    file = version / FILE
    requests = [read_request(record) for record in records(file)] if file.exists() else []
    for request in requests:
        session.run(request.spec.signature, request.inputs)
    return len(requests)


def records(file: Path):
    """Yield the records of a TFRecord file: length, checksum, content, checksum."""
    data, place = file.read_bytes(), 0
    while place < len(data):
        (size,) = struct.unpack_from("<Q", data, place)
        yield data[place + 12 : place + 12 + size]
        place += size + 16


def read_request(record: bytes) -> PredictRequest:
    """Read the PredictRequest of a PredictionLog (`apis/prediction_log.proto`)."""
    log = dict(fields(record))[_PREDICT_LOG]
    return read_predict_request(dict(fields(log))[1])


def write_request(request: PredictRequest) -> bytes:
    """Write a PredictionLog of a request without an answer."""
    return field(_PREDICT_LOG, field(1, write_predict_request(request)))
