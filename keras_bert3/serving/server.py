"""A small server for tests and laptops, with TensorFlow Serving's REST interface.

    python -m keras_bert3.serving.server saved_models/mnli

It loads what TensorFlow Serving loads, by the same C++ loader, with XLA off and no operation beyond
TensorFlow's own registered; picks the newest version and goes over to a newer one without losing a
request; runs warm-up requests first. It has no batching, no TLS and no access control: for
everything else there is the real one.

| path                                           | answer                                        |
|------------------------------------------------|-----------------------------------------------|
| POST `/v1/models/NAME[/versions/N]:predict`    | predictions                                   |
| GET `/v1/models/NAME[/versions/N]`             | which version is loaded                       |
| GET `/v1/models/NAME[/versions/N]/metadata`    | signatures                                    |
| GET `/monitoring/prometheus/metrics`           | counts and times                              |
| GET `/healthz`                                 | 200 once a model is loaded                    |
| GET `/`                                        | a page to try the models with a browser       |
"""

import argparse
import json
import logging
import re
import sys
import time
import urllib.parse
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from keras_bert3.serving import rest
from keras_bert3.serving.grpc_server import GrpcServer
from keras_bert3.serving.library import CODES, ServingError
from keras_bert3.serving.models import Model
from keras_bert3.serving.statistics import Statistics

PAGE = Path(__file__).with_name("page.html")
"""For people; everything in it is in this one file."""
LARGEST_REQUEST = 16 * 2**20
"""Bytes."""
HTTP_STATUS = {
    CODES["INVALID_ARGUMENT"]: 400,
    CODES["FAILED_PRECONDITION"]: 400,
    CODES["NOT_FOUND"]: 404,
    CODES["UNIMPLEMENTED"]: 501,
    CODES["UNAVAILABLE"]: 503,
}
_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>\d{1,18}))?(?P<what>[:/]\w+)?"
)


class Server(ThreadingHTTPServer):
    """Serves models over HTTP, a thread a connection.

    Args:
        models: what is served.
        host: address to listen at; this machine's own by default, where nobody else can ask.
        port: 0 for any free one, which `port` then tells.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, models: Sequence[Model], host: str = "127.0.0.1", port: int = 8501) -> None:
        self.models = {model.name: model for model in models}
        self.statistics = Statistics()
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server_address[1]

    def model(self, name: str) -> Model:
        """Find a model by name.

        Raises:
            ServingError: NOT_FOUND.
        """
        if name not in self.models:
            raise ServingError(
                CODES["NOT_FOUND"],
                f"Expected a model among {sorted(self.models)}. Received: {name}",
            )
        return self.models[name]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Server

    def do_POST(self) -> None:
        """Answer `:predict`."""
        started, name, status = time.perf_counter(), "", "OK"
        try:
            body = self._body()
            found = self._place()
            if found is None or found["what"] != ":predict":
                raise ServingError(
                    CODES["NOT_FOUND"],
                    f"Expected /v1/models/NAME:predict. Received: {self.path}",
                )
            model = self.server.model(found["name"])
            name = model.name
            self._answer(200, _predict(model, found["version"], body))
        except ServingError as error:
            status = error.code_name
            self._answer(HTTP_STATUS.get(error.code, 500), {"error": str(error)})
        finally:
            self.server.statistics.record(name, status, time.perf_counter() - started)

    def do_GET(self) -> None:
        """Answer everything that only looks."""
        try:
            if self.path == "/healthz":
                self._answer(200, {"status": "OK"})
            elif self.path == "/":
                self._send(200, "text/html; charset=utf-8", PAGE.read_text(encoding="utf-8"))
            elif self.path == "/v1/models":
                self._answer(200, {"models": sorted(self.server.models)})
            elif self.path == "/monitoring/prometheus/metrics":
                self._send(200, "text/plain; version=0.0.4", self.server.statistics.text())
            else:
                self._answer(200, self._look())
        except ServingError as error:
            self._answer(HTTP_STATUS.get(error.code, 500), {"error": str(error)})

    def _place(self) -> re.Match | None:
        return _PATH.fullmatch(urllib.parse.unquote(self.path))

    def _look(self) -> dict[str, Any]:
        found = self._place()
        if found is None or found["what"] not in (None, "/metadata"):
            raise ServingError(CODES["NOT_FOUND"], f"Expected a known path. Received: {self.path}")
        number = int(found["version"]) if found["version"] else None
        with self.server.model(found["name"]).use(number) as version:
            return _metadata(found["name"], version) if found["what"] else _status(version.number)

    def _body(self) -> bytes:
        """Read the request; one that is too large is not read at all."""
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or len(size) > 12 or int(size) > LARGEST_REQUEST:
            self.close_connection = True
            raise ServingError(
                CODES["INVALID_ARGUMENT"],
                f"Expected a Content-Length up to {LARGEST_REQUEST}. "
                f"Received: {size[:12] or 'none'}",
            )
        return self.rfile.read(int(size))

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content, ensure_ascii=False))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: counts are in the metrics, and texts are nobody's business."""


def _predict(model: Model, version: str | None, body: bytes) -> dict[str, Any]:
    request = rest.parse_request(body)
    name = request.get("signature_name") or "serving_default"
    with model.use(int(version) if version else None) as loaded:
        inputs = rest.read_inputs(request, loaded.session.signature(str(name)))
        outputs = loaded.session.run(str(name), inputs)
    return rest.write_outputs(outputs, as_rows="instances" in request)


def _status(number: int) -> dict[str, Any]:
    status = {"error_code": "OK", "error_message": ""}
    return {
        "model_version_status": [{"version": str(number), "state": "AVAILABLE", "status": status}]
    }


def _metadata(name: str, version) -> dict[str, Any]:
    definition = {
        signature: {
            side: {key: _tensor(info) for key, info in getattr(found, side).items()}
            for side in ("inputs", "outputs")
        }
        for signature, found in version.session.signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": definition}},
    }


def _tensor(info) -> dict[str, Any]:
    dtype = {"string": "DT_STRING", "float32": "DT_FLOAT"}.get(
        info.dtype, f"DT_{info.dtype.upper()}"
    )
    dims = [{"size": str(size), "name": ""} for size in info.shape]
    shape = {"dim": dims, "unknown_rank": False}
    return {"name": info.tensor, "dtype": dtype, "tensor_shape": shape}


def main(arguments: list[str]) -> int:
    """Serve from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("directories", nargs="+", help="folders of versions, named as models")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501, help="of REST; 0 for any")
    parser.add_argument("--threads", type=int, default=None, help="of TensorFlow")
    parser.add_argument("--grpc-port", type=int, default=None, help="of gRPC; none by default")
    chosen = parser.parse_args(arguments)
    if chosen.threads is not None and chosen.threads < 1:
        parser.error(f"Expected --threads of at least 1. Received: {chosen.threads}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        models = [Model(directory, chosen.threads) for directory in chosen.directories]
    except ServingError as error:
        print(error, file=sys.stderr)
        return 1
    server = Server(models, chosen.host, chosen.port)
    for model in models:
        model.watch()
    print(f"listening at http://{chosen.host}:{server.port}", flush=True)
    if chosen.grpc_port is not None:
        calls = GrpcServer(server, f"{chosen.host}:{chosen.grpc_port}")
        print(f"listening at grpc://{chosen.host}:{calls.port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
