import numpy as np
import pytest

from keras_bert3.serving.client import RequestError
from keras_bert3.serving.grpc_client import GrpcClient
from tests.serving.conftest import tokens

grpc = pytest.importorskip("grpc")
pytest.importorskip("tensorflow", exc_type=ImportError)

PAIRS = {"text": ["the cat", "Ünder a tree"], "text_pair": ["sat", "dogs ran"]}


@pytest.fixture(scope="module")
def calls(client):
    found = GrpcClient("mnli", client.grpc_address, deadline=60.0)
    yield found
    found.close()


def test_answers_are_those_of_rest(client, calls):
    by_rest, by_grpc = client.predict(PAIRS), calls.predict(PAIRS)
    assert sorted(by_rest) == sorted(by_grpc)
    for name, value in by_rest.items():
        assert by_grpc[name].tolist() == value.tolist()
    inputs = tokens(3, 9)
    scores = calls.predict(inputs, "tokens", version=1, outputs=("scores",))
    assert list(scores) == ["scores"] and scores["scores"].dtype == "float32"
    np.testing.assert_array_equal(scores["scores"], client.predict(inputs, "tokens")["scores"])


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ({"inputs": {"text": ["a"]}}, "INVALID_ARGUMENT", "Expected inputs"),
        ({"inputs": PAIRS, "signature": "x"}, "FAILED_PRECONDITION", "Expected a signature"),
        ({"inputs": PAIRS, "version": 9}, "NOT_FOUND", "Expected version 1"),
        ({"inputs": PAIRS, "outputs": ("x",)}, "INVALID_ARGUMENT", "Expected outputs"),
        (
            {"inputs": {"text": [[1.5]], "text_pair": ["a"]}},
            "INVALID_ARGUMENT",
            "Expected",
        ),
        (
            {"inputs": {"text": np.array([b"\xff"], object), "text_pair": ["a"]}},
            "INVALID_ARGUMENT",
            "Invalid formatting",
        ),
        (
            {"inputs": {**tokens(1, 5), "lengths": np.array([5])}, "signature": "tokens"},
            "INVALID_ARGUMENT",
            "Expected 'lengths' as int32 of 1 dimensions. Received: int64",
        ),
        (
            {"inputs": {**PAIRS, "text": ["a" * 2**24] * 2}},
            "RESOURCE_EXHAUSTED",
            "larger than max",
        ),
    ],
)
def test_errors_have_the_codes_of_grpc(calls, arguments, status, message):
    with pytest.raises(RequestError, match=message) as failure:
        calls.predict(**arguments)
    codes = {code.name: code.value[0] for code in grpc.StatusCode}
    assert failure.value.status == codes[status]
    assert len(calls.predict(PAIRS)["label"]) == 2


def test_a_megabyte_of_text_is_cut_and_bytes_that_say_nothing_are_refused(client, calls):
    large = {"text": ["the cat " * 2**17], "text_pair": ["dog"]}
    found = calls.predict(large, outputs=("scores",))["scores"]
    cut = {"text": ["the cat " * 40], "text_pair": ["dog"]}
    np.testing.assert_array_equal(found, calls.predict(cut)["scores"])
    named = b"\x0a\x06\x0a\x04mnli"
    for message in (b"\xff" * 9, b"", named + b"\x12\x01a", named + b"\x11"):
        with pytest.raises(grpc.RpcError) as failure:
            calls._call(message, timeout=60)
        assert failure.value.code().name in ("INVALID_ARGUMENT", "NOT_FOUND")
        assert "Expected a" in failure.value.details()
    assert len(calls.predict(PAIRS)["label"]) == 2


def test_an_absent_server_is_said_to_be_absent():
    with pytest.raises(RequestError) as failure:
        GrpcClient("mnli", "127.0.0.1:9", deadline=2.0, retries=1).predict(PAIRS)
    assert failure.value.status in (4, 14)


def test_official_stubs_are_understood(client):
    service = pytest.importorskip(
        "tensorflow_serving.apis.prediction_service_pb2_grpc", exc_type=ImportError
    )
    from tensorflow import make_ndarray, make_tensor_proto
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
    )

    with grpc.insecure_channel(client.grpc_address) as channel:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "mnli"
        for name, value in PAIRS.items():
            request.inputs[name].CopyFrom(make_tensor_proto(value))
        answer = service.PredictionServiceStub(channel).Predict(request, timeout=60)
        found = make_ndarray(answer.outputs["scores"])
        np.testing.assert_array_equal(found, client.predict(PAIRS)["scores"])
        assert answer.model_spec.version.value == 1
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = "mnli"
        states = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(status, timeout=60)
        assert [state.version for state in states.model_version_status] == [1]
        metadata = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        metadata.model_spec.name = "mnli"
        found = service.PredictionServiceStub(channel).GetModelMetadata(metadata, timeout=60)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        found.metadata["signature_def"].Unpack(signatures)
        assert sorted(signatures.signature_def) == ["embed", "serving_default", "tokens"]
