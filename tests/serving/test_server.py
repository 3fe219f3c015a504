import http.client
import json
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from keras_bert3.serving import server
from keras_bert3.serving.client import Client, RequestError, as_array
from tests.serving.conftest import served, tokens

pytest.importorskip("tensorflow", exc_type=ImportError)


def ask(client, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(client.parts.netloc, timeout=60)
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    connection.request(method, path, data, headers or {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content.decode()


def predict(client, **body):
    status, content = ask(client, "POST", "/v1/models/mnli:predict", body)
    return status, json.loads(content)


def test_rows_and_columns_give_the_same(client):
    rows = [{"text": "the cat", "text_pair": "sat"}, {"text": "dogs", "text_pair": "ran on"}]
    status, by_row = predict(client, instances=rows)
    assert status == 200 and sorted(by_row) == ["predictions"]
    columns = {"text": ["the cat", "dogs"], "text_pair": ["sat", "ran on"]}
    _, by_column = predict(client, inputs=columns)
    for i, row in enumerate(by_row["predictions"]):
        assert row == {name: value[i] for name, value in by_column["outputs"].items()}
    _, alone = predict(client, instances=["the cat"], signature_name="embed")
    assert sorted(alone["predictions"][0]) == ["mean", "pooled"]
    _, coded = predict(client, instances=[{"b64": "dGhlIGNhdA=="}], signature_name="embed")
    assert coded == alone


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"inputs": {"text": ["a"]}}, 400, "Expected inputs ['text', 'text_pair']"),
        ({"inputs": [["a"], ["b"]]}, 400, "Expected inputs ['text', 'text_pair']. Received: list"),
        ({"inputs": 1}, 400, "Expected inputs ['text', 'text_pair']. Received: int"),
        ({"instances": [{"text": "a", "x": "b"}]}, 400, "['text', 'x'] in row 0"),
        ({"instances": []}, 400, "at least one row"),
        ({"instances": [1], "inputs": [1]}, 400, "either 'instances' or 'inputs'"),
        ({"instances": ["a"], "signature_name": "nothing"}, 400, "Expected a signature among"),
        ({"inputs": {"text": [1], "text_pair": ["a"]}}, 400, "int instead of a string"),
        ({"inputs": {"text": "a", "text_pair": ["a"]}}, 400, "'text' as string of 1 dimensions"),
        ({"instances": [[1, 2], [3]], "signature_name": "embed"}, 400, "different lengths"),
        ({"instances": [{"b64": "/w=="}], "signature_name": "embed"}, 400, "Invalid formatting"),
        ({"inputs": {"text": ["a"], "text_pair": ["a", "b"]}}, 400, "as many second texts"),
    ],
)
def test_what_is_wrong_is_said_and_the_server_lives(client, body, status, message):
    found, answer = predict(client, **body)
    assert (found, sorted(answer)) == (status, ["error"])
    assert message in answer["error"]
    assert predict(client, inputs={"text": ["a"], "text_pair": ["b"]})[0] == 200


def test_tokens_out_of_range_are_refused(client):
    good = {name: value.tolist() for name, value in tokens(2, 5).items()}
    for change, message in (
        ({"token_ids": [[9999] * 5, [0] * 5]}, "Expected token_ids from 0 to"),
        ({"lengths": [6, 1]}, "Expected lengths from 1"),
        ({"lengths": [0, 1]}, "Expected lengths from 1"),
        ({"segment_ids": [[2] * 5, [0] * 5]}, "Expected segment_ids from 0 to 1"),
        ({"lengths": [3]}, "one of lengths for each row"),
        ({"segment_ids": [[0] * 5]}, "of the shape of token_ids"),
        ({"token_ids": [[0.5] * 5, [0] * 5]}, "float64 values"),
        ({"lengths": [2**40, 1]}, "a number out of range"),
        ({n: [[]] for n in ("token_ids", "segment_ids")} | {"lengths": [0]}, "lengths from 1"),
        ({"token_ids": [1, 2]}, "Expected 'token_ids' as int32 of 2 dimensions"),
        ({n: [[0] * 40] for n in ("token_ids", "segment_ids")} | {"lengths": [3]}, "at most 32"),
    ):
        status, answer = predict(client, inputs={**good, **change}, signature_name="tokens")
        assert status == 400 and message in answer["error"], answer
    assert predict(client, inputs=good, signature_name="tokens")[0] == 200


def test_paths_bodies_and_sizes(client):
    assert ask(client, "POST", "/v1/models/other:predict", {"instances": ["a"]})[0] == 404
    assert ask(client, "POST", "/v1/models/mnli/versions/9:predict", {"instances": ["a"]})[0] == 404
    assert ask(client, "POST", "/v1/models/mnli:classify", {})[0] == 404
    assert ask(client, "GET", "/nothing")[0] == 404
    assert ask(client, "GET", f"/v1/models/mnli/versions/{'9' * 5000}")[0] == 404
    for body in (b"\xff\xfe", b"{", b"[]", b"[" * 100000):
        assert ask(client, "POST", "/v1/models/mnli:predict", body)[0] == 400
    for size in (str(2**40), "9" * 5000, "-1"):
        length = {"Content-Length": size}
        assert ask(client, "POST", "/v1/models/mnli:predict", b"", length)[0] == 400
    large = {"text": ["the cat " * 131072], "text_pair": ["dog"]}
    assert predict(client, inputs=large)[0] == 200


def test_states_metadata_health_and_metrics(client):
    state = json.loads(ask(client, "GET", "/v1/models/mnli")[1])["model_version_status"][0]
    assert (state["version"], state["state"]) == ("1", "AVAILABLE")
    assert ask(client, "GET", "/v1/models/mnli/versions/1/metadata")[0] == 200
    assert ask(client, "GET", "/healthz")[0] == 200
    predict(client, instances=["a"], signature_name="nothing")
    text = ask(client, "GET", "/monitoring/prometheus/metrics")[1]
    found = ':tensorflow:serving:request_count{model_name="mnli",status="FAILED_PRECONDITION"} '
    assert found in text
    assert ':request_latency_bucket{model_name="mnli",le="+Inf"}' in text


def test_the_page_fetches_nothing_from_elsewhere(client):
    status, page = ask(client, "GET", "/")
    assert status == 200 and "<textarea" not in page.split("<script>")[0]
    assert "http://" not in page and "https://" not in page and "src=" not in page
    assert json.loads(ask(client, "GET", "/v1/models")[1]) == {"models": ["mnli"]}


def test_a_new_version_is_taken_up_under_load_and_training_code_is_not_needed(exported, tmp_path):
    moved = tmp_path / "é 1"
    shutil.copytree(exported[1], moved)
    failures, versions, stop = [], set(), threading.Event()
    with served(moved) as (client, process):

        def load():
            while not stop.is_set():
                try:
                    client.predict({"text": ["the cat"], "text_pair": ["dog"]})
                except Exception as error:  # noqa: BLE001
                    failures.append(error)

        workers = [threading.Thread(target=load) for _ in range(2)]
        for worker in workers:
            worker.start()
        try:
            shutil.copytree(moved / "1", moved / "new")
            (moved / "new").rename(moved / "2")
            until = time.monotonic() + 120
            while "2" not in versions and time.monotonic() < until:
                time.sleep(0.2)
                states = json.loads(ask(client, "GET", "/v1/models/%C3%A9%201")[1])
                versions.add(states["model_version_status"][0]["version"])
            (moved / "3").mkdir()  # no model: the second version goes on
            time.sleep(1.5)
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        assert not failures
        assert versions == {"1", "2"}
        client.predict({"text": ["the cat"], "text_pair": ["dog"]}, version=2)
        with pytest.raises(RequestError, match="Expected version 2 of 'é 1'. Received: 3"):
            client.predict({"text": ["the cat"], "text_pair": ["dog"]}, version=3)
        # no keras, no training code: the process has the C library and numpy
        maps = Path(f"/proc/{process.pid}/maps")
        assert not maps.exists() or "libtensorflow_cc" in maps.read_text()


def test_the_client_splits_batches_and_speaks_plainly(client):
    small = Client("mnli", client.parts.geturl(), batch_size=2)
    pairs = {"text": ["a", "the cat sat", "mat"], "text_pair": ["b", "dog", "log ran"]}
    together, apart = client.predict(pairs), small.predict(pairs)
    for name, value in together.items():
        if value.dtype == object:
            assert value.tolist() == apart[name].tolist()
        else:
            np.testing.assert_allclose(value, apart[name], atol=1e-5)
    assert small.is_ready() and not Client("other", client.parts.geturl()).is_ready()
    with pytest.raises(RequestError, match="Expected inputs") as failure:
        client.predict(["a"])
    assert failure.value.status == 400
    with pytest.raises(ValueError, match="Expected as many rows"):
        client.predict({"text": ["a"], "text_pair": []})
    with pytest.raises(ValueError, match="Expected a url"):
        Client("mnli", "127.0.0.1:8501")


def test_zeros_at_the_end_of_a_text_stay():
    for text in ("a\x00", b"a\x00"):
        assert as_array([text, text * 3]).tolist() == [text, text * 3]
        assert as_array([[text]]).dtype == object
    assert as_array([[1, 2]]).dtype.kind == "i"


def test_the_client_gives_up_at_its_deadline():
    started = time.monotonic()
    with pytest.raises(RequestError, match="Expected an answer from 127.0.0.1:9 within 0.5 s"):
        Client("mnli", "http://127.0.0.1:9", deadline=0.5, retries=50).predict(["a"])
    assert time.monotonic() - started < 5


def test_threads_are_counted_from_one(capsys):
    with pytest.raises(SystemExit):
        server.main(["nowhere", "--threads", "0"])
    assert "Expected --threads of at least 1. Received: 0" in capsys.readouterr().err
