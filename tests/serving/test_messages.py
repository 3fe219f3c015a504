import importlib

import numpy as np
import pytest

from keras_bert3.serving import messages, wire
from keras_bert3.serving.library import ServingError
from keras_bert3.serving.messages import ModelSpec, PredictRequest

ARRAYS = {
    "text": np.array([["a", "ö" * 200], ["", "中"]], object),
    "token_ids": np.array([[1, -2, 2**31 - 1]], "int32"),
    "choice": np.array([-1, 2**40], "int64"),
    "scores": np.array([[0.5], [-3.25]], "float32"),
    "nothing": np.zeros((0, 3), "float32"),
}


def as_bytes(array):
    if array.dtype != object:
        return array.tolist()
    return [v.encode() if isinstance(v, str) else v for v in array.ravel()]


def assert_same(found, expected):
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].shape == value.shape
        assert as_bytes(found[name]) == as_bytes(value)


def test_requests_and_responses_come_back():
    request = PredictRequest(ModelSpec("m", 7, "tokens"), ARRAYS, ("scores", "label"))
    found = messages.read_predict_request(messages.write_predict_request(request))
    assert (found.spec, found.outputs) == (request.spec, request.outputs)
    assert_same(found.inputs, ARRAYS)
    newest = messages.read_predict_request(
        messages.write_predict_request(PredictRequest(ModelSpec("m"), {}))
    )
    assert newest == PredictRequest(ModelSpec("m", None, ""), {}, ())
    response = messages.write_predict_response(request.spec, ARRAYS)
    assert_same(messages.read_predict_response(response), ARRAYS)


def test_the_official_classes_read_and_write_the_same(monkeypatch):
    pytest.importorskip("tensorflow", exc_type=ImportError)
    apis = "tensorflow_serving.apis"
    predict = pytest.importorskip(f"{apis}.predict_pb2", exc_type=ImportError)
    metadata = importlib.import_module(f"{apis}.get_model_metadata_pb2")
    status = importlib.import_module(f"{apis}.get_model_status_pb2")
    from tensorflow import make_ndarray, make_tensor_proto

    request = PredictRequest(ModelSpec("m", 7, "tokens"), ARRAYS, ("scores",))
    official = predict.PredictRequest.FromString(messages.write_predict_request(request))
    assert (official.model_spec.name, official.model_spec.version.value) == ("m", 7)
    assert official.model_spec.signature_name == "tokens"
    assert list(official.output_filter) == ["scores"]
    assert_same({n: make_ndarray(t) for n, t in official.inputs.items()}, ARRAYS)
    for name, value in ARRAYS.items():
        official.inputs[name].CopyFrom(make_tensor_proto(value))
    found = messages.read_predict_request(official.SerializeToString())
    assert_same(found.inputs, ARRAYS)
    written = messages.write_predict_response(request.spec, ARRAYS)
    assert_same(
        {
            n: make_ndarray(t)
            for n, t in predict.PredictResponse.FromString(written).outputs.items()
        },
        ARRAYS,
    )
    states = status.GetModelStatusResponse.FromString(messages.write_status(3))
    assert states.model_version_status[0].version == 3
    assert states.model_version_status[0].state == status.ModelVersionStatus.AVAILABLE
    written = messages.write_metadata(ModelSpec("m", 3), {"tokens": b""})
    found = metadata.GetModelMetadataResponse.FromString(written)
    signatures = metadata.SignatureDefMap()
    assert found.metadata["signature_def"].Unpack(signatures)
    assert list(signatures.signature_def) == ["tokens"]


def test_values_that_stand_for_all_and_packed_numbers():
    shape = wire.field(2, wire.field(2, wire.number_field(1, 3)))
    one = wire.number_field(1, 3) + shape + wire.field(7, wire.varint(2**64 - 5))
    np.testing.assert_array_equal(messages.read_tensor(one), np.array([-5, -5, -5], "int32"))
    single = wire.number_field(1, 3) + shape + wire.number_field(7, 4)
    np.testing.assert_array_equal(messages.read_tensor(single), np.array([4, 4, 4], "int32"))
    packed = wire.number_field(1, 9) + shape + wire.field(10, bytes([1, 2, 3]))
    np.testing.assert_array_equal(messages.read_tensor(packed), np.array([1, 2, 3], "int64"))
    floats = wire.number_field(1, 1) + shape + wire.field(5, np.float32([1, 2, 3]).tobytes())
    np.testing.assert_array_equal(messages.read_tensor(floats), np.float32([1, 2, 3]))


def of_input(*parts):
    return wire.field(2, wire.field(1, "x") + wire.field(2, b"".join(parts)))


INT32, TEXT = wire.number_field(1, 3), wire.number_field(1, 7)
VAST = wire.field(2, wire.field(2, wire.number_field(1, 2**40)))


@pytest.mark.parametrize(
    "broken",
    [
        *[b"\xff" * 9, b"\x0a\x50a", b"\x12\x04\x0a\x01x\x12", b"\x12\x01a"],
        of_input(INT32, wire.number_field(7, 2**40)),
        of_input(INT32, VAST, wire.number_field(7, 1)),
        of_input(TEXT, VAST, wire.field(8, "a")),
        of_input(wire.number_field(1, 99)),
    ],
)
def test_broken_messages_are_refused(broken):
    with pytest.raises(ServingError, match="Expected a PredictRequest"):
        messages.read_predict_request(broken)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**64 - 1])
def test_numbers_come_back(value):
    assert wire.read_varint(wire.varint(value), 0) == (value, len(wire.varint(value)))
    assert list(wire.fields(wire.number_field(5, value) + wire.field(1, "x"))) == [
        (5, value),
        (1, b"x"),
    ]
