"""The small server's gRPC interface: `Predict`, `GetModelMetadata` and `GetModelStatus`."""

import time
from concurrent import futures

from keras_bert3.serving import messages
from keras_bert3.serving.library import CODES, ServingError
from keras_bert3.serving.wire import fields


class GrpcServer:
    """Answers TensorFlow Serving's gRPC calls for the models of a `Server`.

    Args:
        server: whose models are asked and whose statistics are kept.
        address: such as "127.0.0.1:8500"; port 0 for any free one, which `port` then tells.

    Raises:
        ImportError: without the package grpcio.
    """

    def __init__(self, server, address: str) -> None:
        import grpc

        self.server, self._grpc = server, grpc
        services = {
            "PredictionService": {"Predict": _predict, "GetModelMetadata": _metadata},
            "ModelService": {"GetModelStatus": _status},
        }
        self._running = grpc.server(
            futures.ThreadPoolExecutor(8),
            options=[("grpc.max_receive_message_length", messages.LARGEST_MESSAGE)],
        )
        for service, calls in services.items():
            handlers = {
                name: grpc.unary_unary_rpc_method_handler(self._answering(function))
                for name, function in calls.items()
            }
            handler = grpc.method_handlers_generic_handler(
                f"tensorflow.serving.{service}", handlers
            )
            self._running.add_generic_rpc_handlers((handler,))
        self.port = self._running.add_insecure_port(address)
        self._running.start()

    def _answering(self, function):
        """Turn a function of bytes into a call with statuses, counted."""
        codes = {code.value[0]: code for code in self._grpc.StatusCode}

        def answer(message: bytes, context):
            started, model, status = time.perf_counter(), "", "OK"
            try:
                model = self.server.model(_spec(message).name).name
                return function(self.server, message)
            except ServingError as error:
                status = error.code_name
                context.abort(codes.get(error.code, self._grpc.StatusCode.UNKNOWN), str(error))
            finally:
                self.server.statistics.record(model, status, time.perf_counter() - started)

        return answer

    def stop(self) -> None:
        """Stop answering, at once."""
        self._running.stop(0)


def _predict(server, message: bytes) -> bytes:
    request = messages.read_predict_request(message)
    with server.model(request.spec.name).use(request.spec.version) as version:
        name = request.spec.signature or "serving_default"
        outputs = version.session.run(name, request.inputs, request.outputs or None)
        spec = messages.ModelSpec(request.spec.name, version.number, name)
    return messages.write_predict_response(spec, outputs)


def _spec(message: bytes) -> messages.ModelSpec:
    """Read the ModelSpec that is the first field of every request."""
    try:
        return messages.read_spec(dict(fields(message)).get(1, b""))
    except messages.BROKEN as error:
        raise ServingError(
            CODES["INVALID_ARGUMENT"], f"Expected a model_spec. Received: {error!r}"
        ) from error


def _metadata(server, message: bytes) -> bytes:
    spec = _spec(message)
    with server.model(spec.name).use(spec.version) as version:
        found = messages.ModelSpec(spec.name, version.number)
        return messages.write_metadata(found, version.session.definitions)


def _status(server, message: bytes) -> bytes:
    spec = _spec(message)
    with server.model(spec.name).use(spec.version) as version:
        return messages.write_status(version.number)
