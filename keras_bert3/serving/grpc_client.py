"""Asks a TensorFlow Serving, or the small server here, over gRPC; needs the package grpcio."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert3.serving import messages
from keras_bert3.serving.client import RequestError, as_array


class GrpcClient:
    """A client of one model.

    Args:
        model: its name at the server.
        address: of the server's gRPC interface.
        deadline: seconds that a call may take, retries included.
        retries: how often a request is sent again where the server is not available.

    Example:
        >>> client = GrpcClient("mnli", "127.0.0.1:8500")
        >>> client.predict({"text": ["a joy"], "text_pair": ["a bore"]})["label"]
        array(['contradiction'], dtype=object)
    """

    def __init__(
        self,
        model: str,
        address: str = "127.0.0.1:8500",
        deadline: float = 30.0,
        retries: int = 3,
    ) -> None:
        import grpc

        self._grpc, self.model = grpc, model
        self.deadline, self.retries = deadline, retries
        # an answer may be larger than the 4 MiB that gRPC reads unless told otherwise
        options = [("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options)
        self._call = self._channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = "serving_default",
        version: int | None = None,
        outputs: tuple[str, ...] = (),
    ) -> dict[str, np.ndarray]:
        """Ask for predictions.

        Args:
            inputs: strings, or arrays of the dtypes of the signature, by its inputs' names.
            signature: its name.
            version: of the model; the server's newest when None.
            outputs: those wanted; all when empty.

        Returns:
            An array for each output; strings are an object array of `str`.

        Raises:
            RequestError: in the server's words; its `status` is a number of gRPC's.
        """
        arrays = {name: as_array(value) for name, value in inputs.items()}
        request = messages.PredictRequest(
            messages.ModelSpec(self.model, version, signature), arrays, outputs
        )
        answer = self._send(messages.write_predict_request(request))
        return {
            name: _text(value) for name, value in messages.read_predict_response(answer).items()
        }

    def _send(self, message: bytes) -> bytes:
        until, attempt = time.monotonic() + self.deadline, 0
        while True:
            try:
                return self._call(message, timeout=max(until - time.monotonic(), 0.001))
            except self._grpc.RpcError as error:
                waits = min(0.1 * 2**attempt, max(until - time.monotonic(), 0))
                is_absent = error.code() is self._grpc.StatusCode.UNAVAILABLE
                if not is_absent or attempt == self.retries or not waits:
                    raise RequestError(error.code().value[0], error.details()) from error
            time.sleep(waits)
            attempt += 1

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _text(array: np.ndarray) -> np.ndarray:
    """Bytes of an output as `str`."""
    if array.dtype != object:
        return array
    flat = np.array([value.decode("utf-8", "replace") for value in array.ravel()], object)
    return flat.reshape(array.shape)
