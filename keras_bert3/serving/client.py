"""Asks a TensorFlow Serving, or the small server here, over REST; with no other package."""

import http.client
import json
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

RETRIED = (429, 502, 503, 504)
"""HTTP statuses of a server that is not there yet, or has too much to do."""


class RequestError(Exception):
    """A request that was refused, or that nobody answered in time.

    Args:
        status: of HTTP; 0 where there was no answer.
        message: the server's own words where it had any.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A client of one model.

    Args:
        model: its name at the server.
        url: of the server's REST interface.
        deadline: seconds that a call may take, retries included.
        retries: how often a request is sent again where nobody answers or the server is not ready.
        batch_size: rows of one request; more are sent one request after another.

    Example:
        >>> client = Client("mnli")
        >>> client.predict({"text": ["a joy"], "text_pair": ["a bore"]})["label"]
        array(['contradiction'], dtype=object)
    """

    def __init__(
        self,
        model: str,
        url: str = "http://127.0.0.1:8501",
        deadline: float = 30.0,
        retries: int = 3,
        batch_size: int = 32,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"Expected a url such as http://127.0.0.1:8501. Received: {url!r}")
        self.model, self.parts = model, parts
        self.deadline, self.retries, self.batch_size = deadline, retries, batch_size
        self._only_outputs: dict[str, str] = {}

    def predict(
        self,
        inputs: Mapping[str, Any] | Sequence[str],
        signature: str = "serving_default",
        version: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Ask for predictions.

        Args:
            inputs: lists or arrays of equally many rows by the names of the signature's inputs;
                strings alone are `text`.
            signature: its name.
            version: of the model; the server's newest when None.

        Returns:
            An array for each output; strings are an object array of `str`.

        Raises:
            RequestError: in the server's words, or saying that none answered before the deadline.
            ValueError: for no rows, or inputs of different lengths.
        """
        columns = dict(inputs) if isinstance(inputs, Mapping) else {"text": inputs}
        columns = {name: as_array(value).tolist() for name, value in columns.items()}
        counts = {name: len(value) for name, value in columns.items()}
        if len(set(counts.values())) != 1 or not next(iter(counts.values())):
            raise ValueError(f"Expected as many rows, at least one, of each. Received: {counts}")
        until = time.monotonic() + self.deadline
        results = []
        for first in range(0, next(iter(counts.values())), self.batch_size):
            rows = {n: value[first : first + self.batch_size] for n, value in columns.items()}
            results.append(self._predict(rows, signature, version, until))
        return {name: _join([result[name] for result in results]) for name in results[0]}

    def metadata(self) -> dict[str, Any]:
        """Return the signatures of the model: names, dtypes and shapes."""
        until = time.monotonic() + self.deadline
        found = self._send("GET", self._path(None, "/metadata"), None, until)
        return found["metadata"]["signature_def"]["signature_def"]

    def is_ready(self) -> bool:
        """Whether the server has the model."""
        try:
            path = self._path(None, "")
            states = self._ask("GET", path, None, 5.0)[1]["model_version_status"]
        except (OSError, http.client.HTTPException, RequestError, KeyError):
            return False
        return any(state["state"] == "AVAILABLE" for state in states)

    def _predict(self, rows, signature, version, until) -> dict[str, np.ndarray]:
        body = json.dumps({"signature_name": signature, "inputs": rows}).encode("utf-8")
        found = self._send("POST", self._path(version, ":predict"), body, until)["outputs"]
        if not isinstance(found, dict):  # the name of an only output is left out
            if signature not in self._only_outputs:
                outputs = self.metadata()[signature]["outputs"]
                self._only_outputs[signature] = next(iter(outputs))
            found = {self._only_outputs[signature]: found}
        return {name: _array(value) for name, value in found.items()}

    def _path(self, version: int | None, what: str) -> str:
        name = urllib.parse.quote(self.model)
        place = "" if version is None else f"/versions/{version}"
        return f"{self.parts.path.rstrip('/')}/v1/models/{name}{place}{what}"

    def _send(self, method: str, path: str, body: bytes | None, until: float) -> dict[str, Any]:
        """Send a request, again where that may help, until the deadline."""
        error: Exception | None = None
        for attempt in range(self.retries + 1):
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                status, answer = self._ask(method, path, body, left)
            except (OSError, http.client.HTTPException) as failure:
                error = failure
            else:
                if status == 200:
                    return answer
                message = answer.get("error", f"HTTP status {status}")
                if status not in RETRIED:
                    raise RequestError(status, message)
                error = RequestError(status, message)
            time.sleep(min(0.1 * 2**attempt, max(until - time.monotonic(), 0)))
        raise RequestError(
            getattr(error, "status", 0),
            f"Expected an answer from {self.parts.netloc} within {self.deadline} s. "
            f"Received: {error or 'none'}",
        ) from error

    def _ask(self, method, path, body, seconds) -> tuple[int, dict[str, Any]]:
        https = self.parts.scheme == "https"
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        connection = kind(self.parts.hostname or "", self.parts.port, timeout=seconds)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, {"error": content.decode("utf-8", "replace")[:300]}


def as_array(value: Any) -> np.ndarray:
    """A list as an array; strings as objects, since numpy's own lose zeros at their ends."""
    array = np.asarray(value)
    return np.array(value, object) if array.dtype.kind in "US" else array


def _array(value: Any) -> np.ndarray:
    """An output as an array; numbers with a point are float32, as every output is."""
    array = as_array(value)
    return array.astype("float32") if array.dtype.kind == "f" else array


def _join(parts: list[np.ndarray]) -> np.ndarray:
    """Put rows of several answers together; shorter ones are filled up at their ends."""
    widths = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
    padded = [
        np.pad(
            part,
            [(0, 0), *((0, int(w) - size) for w, size in zip(widths, part.shape[1:], strict=True))],
            constant_values="" if part.dtype == object else 0,
        )
        for part in parts
    ]
    return np.concatenate(padded)
