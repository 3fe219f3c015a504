import json

import keras
import numpy as np
import pytest

from keras_bert3.serving import export, worker
from tests.serving.conftest import LABELS, classifier, tokens, with_mask

pytest.importorskip("tensorflow", exc_type=ImportError)


def outputs_of(task, inputs):
    return keras.ops.convert_to_numpy(task(with_mask(inputs), training=False))


@pytest.mark.parametrize("shape", [(1, 32), (3, 17), (8, 24), (2, 5), (2, 1)])
def test_V10_V11_every_batch_and_length_equals_the_training_backend(exported, client, shape):
    inputs = tokens(*shape, seed=shape[1])
    found = client.predict(inputs, "tokens")
    expected = outputs_of(exported[0], inputs)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"].sum(1), 1, atol=1e-6)
    assert found["label"].tolist() == [LABELS[i] for i in expected.argmax(1)]
    assert found["labels"].tolist() == [LABELS] * shape[0]


def test_texts_equal_the_python_path(exported, client):
    task, _ = exported
    first = ["the cat sat", "Ünder the TREE", "", "dogs slept [SEP] on it", "the dog ran " * 20]
    second = ["a dog ran", "the cats", "sat", "[MASK] cat", "and then it slept " * 9]
    found = client.predict({"text": first, "text_pair": second})
    np.testing.assert_allclose(found["scores"], task.predict((first, second), verbose=0), atol=1e-5)
    alone = client.predict({"text": first[4:], "text_pair": second[4:]})
    np.testing.assert_allclose(found["scores"][4:], alone["scores"], atol=1e-5)


def test_V4_V5_rows_of_different_lengths_in_one_batch(exported, client):
    texts = ["the cat", "the cat sat on the mat and then it slept all day long"]
    together = client.predict({"text": texts, "text_pair": texts[::-1]})["scores"]
    for row, (a, b) in zip(together, zip(texts, texts[::-1], strict=True), strict=True):
        alone = client.predict({"text": [a], "text_pair": [b]})["scores"][0]
        np.testing.assert_allclose(row, alone, atol=1e-5)


def test_padding_with_the_first_number_is_harmless(client):
    """As a server does that joins requests: `tensor.flat(0)` fills what is missing."""
    inputs = tokens(3, 7)
    inputs["segment_ids"][0, 0] = 1
    padded = {
        name: np.pad(inputs[name], [(0, 0), (0, 9)], constant_values=inputs[name].flat[0])
        for name in ("token_ids", "segment_ids")
    }
    found = client.predict({**padded, "lengths": inputs["lengths"]}, "tokens")["scores"]
    np.testing.assert_allclose(found, client.predict(inputs, "tokens")["scores"], atol=1e-5)


def test_embeddings_are_means_over_real_tokens(exported, client):
    task, _ = exported
    texts = ["the cat sat", "a dog ran under the tree and slept"]
    inputs = task.preprocess(texts)
    outputs = task.backbone(inputs, training=False)
    hidden = keras.ops.convert_to_numpy(outputs["sequence_output"])
    found = client.predict(texts, "embed")
    for row, mask, vectors in zip(found["mean"], inputs["padding_mask"], hidden, strict=True):
        np.testing.assert_allclose(row, vectors[mask].mean(0), atol=1e-5)
    pooled = keras.ops.convert_to_numpy(outputs["pooled_output"])
    np.testing.assert_allclose(found["pooled"], pooled, atol=1e-5)


def test_V7_V8_V9_names_dtypes_and_the_default_signature(client):
    signatures = client.metadata()
    assert sorted(signatures) == ["embed", "serving_default", "tokens"]
    inputs = {name: info["dtype"] for name, info in signatures["tokens"]["inputs"].items()}
    assert inputs == dict.fromkeys(["lengths", "segment_ids", "token_ids"], "DT_INT32")
    assert sorted(signatures["serving_default"]["inputs"]) == ["text", "text_pair"]
    outputs = signatures["serving_default"]["outputs"]
    assert sorted(outputs) == ["label", "labels", "probabilities", "scores"]
    for signature in signatures.values():
        for info in signature["outputs"].values():
            assert info["tensor_shape"]["dim"][0]["size"] == "-1"


def test_V14_weights_are_variables_stored_once(exported):
    task, directory = exported
    variables = directory / "1" / "variables"
    size = sum(file.stat().st_size for file in variables.glob("variables.data*"))
    parameters = sum(int(np.prod(weight.shape)) for weight in task.weights)
    graph = 4096  # of the objects, beside the numbers; the same for a model of any size
    assert 4 * parameters * 0.9 <= size <= 4 * parameters * 1.05 + graph


def test_V1_V2_V3_V16_operations_are_cores_without_xla(exported):
    report = json.loads((exported[1] / "1" / "export.json").read_text(encoding="utf-8"))
    assert report["trained_on"] == keras.backend.backend()
    assert report["largest_difference"] <= 1e-5
    assert "UnicodeDecode" in report["operations"]
    assert not {"XlaCallModule", "CaseFoldUTF8"} & set(report["operations"])
    from keras_bert3.serving.operations import check_operations

    check_operations(report["operations"])
    with pytest.raises(ValueError, match="Received: TFText>RoundRobinTrim, XlaCallModule too"):
        check_operations(["XlaCallModule", "TFText>RoundRobinTrim", "MatMul"])


def test_V12_V16_nothing_is_bound_to_the_machine_that_exported_or_to_xla(exported):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    graph = SavedModel.FromString((exported[1] / "1" / "saved_model.pb").read_bytes())
    graph = graph.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    assert len(nodes) > 100
    # how `jit_compile=True` is written down
    assert not any(part.attr["_XlaMustCompile"].b for part in (*nodes, *graph.library.function))
    assert {node.device.rsplit("/", 1)[-1] for node in nodes} <= {
        "",
        "device:CPU:0",
        "device:CPU:*",
    }
    assert "Platforms: any." in (exported[1] / "1" / "README.md").read_text(encoding="utf-8")


def test_V17_tokenization_stays_outside_the_keras_model(exported, client):
    task, _ = exported
    inputs = task.preprocess((["the cat"], ["a dog"]))
    assert {value.dtype.kind for value in inputs.values()} <= set("ib")
    assert {keras.backend.standardize_dtype(v.dtype) for v in task.variables} == {"float32"}
    taken = client.metadata()["tokens"]["inputs"].values()
    assert {info["dtype"] for info in taken} == {"DT_INT32"}


def test_V15_a_warm_up_request_for_each_signature_and_length(exported):
    from keras_bert3.serving import warm_up

    file = exported[1] / "1" / "assets.extra" / "tf_serving_warmup_requests"
    requests = [warm_up.read_request(record) for record in warm_up.records(file)]
    names = [request.spec.signature for request in requests]
    assert sorted(set(names)) == ["embed", "serving_default", "tokens"]
    inputs = [request.inputs for request in requests if request.spec.signature == "tokens"]
    assert [x["token_ids"].shape for x in inputs] == [(1, 16), (1, 32)]
    assert [x["lengths"].tolist() for x in inputs] == [[16], [32]]


def test_the_folder_appears_whole_or_not_at_all(exported, tmp_path, monkeypatch):
    assert sorted(file.name for file in exported[1].iterdir()) == ["1"]
    assert (exported[1] / "1" / "README.md").read_text().startswith("# mnli")

    def fail(folder):
        (folder / "version").mkdir()
        raise ValueError("Expected the outputs of the training backend")

    monkeypatch.setattr(export, "_run_apart", fail)
    monkeypatch.setattr(worker, "run", fail)
    with pytest.raises(ValueError, match="training backend"):
        export.export_saved_model(exported[0], tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_another_answer_of_tensorflow_is_not_exported(tmp_path):
    class Made:
        def raw(self, **inputs):
            return np.ones((2, 3), "float32")

    for given, message in (
        (np.full((2, 3), 1.001, "float32"), "a difference of 1.0"),
        (np.ones((2, 4), "float32"), "Expected outputs of shapes"),
        (np.full((2, 3), np.nan, "float32"), "a difference of nan"),
    ):
        np.savez(tmp_path / "probe.npz", in_token_ids=np.zeros((2, 4)), out_0=given)
        with pytest.raises(ValueError, match=message):
            worker.check(Made(), tmp_path / "probe.npz")
    np.savez(tmp_path / "probe.npz", in_token_ids=np.zeros(1), out_0=np.ones((2, 3), "float32"))
    assert worker.check(Made(), tmp_path / "probe.npz") == 0.0


def test_what_is_no_place_for_versions_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="Received: the file"):
        export.export_saved_model(None, tmp_path / "file")
    (tmp_path / "saved_model.pb").write_text("")
    with pytest.raises(ValueError, match="Received: a version itself"):
        export.export_saved_model(None, tmp_path)


def test_versions_go_up(tmp_path):
    for name in ("1", "3", "10", "temporary", ".export-x"):
        (tmp_path / name).mkdir()
    fresh = tmp_path / "temporary"
    assert export._publish(fresh, tmp_path) == tmp_path / "11"
    assert export.versions(tmp_path) == [1, 3, 10, 11]


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="needs no other process")
def test_V13_without_tensorflow_an_error_names_the_extra(tmp_path, monkeypatch):
    hidden = str(export.Path(__file__).resolve().parents[1] / "without_tensorflow")
    monkeypatch.setattr(export, "_write_job", lambda *_: None)
    monkeypatch.setenv("PYTHONPATH", hidden)
    with pytest.raises(ImportError, match=r"keras-bert3\[serving\]"):
        export.export_saved_model(classifier(), tmp_path / "x")


def test_mixed_precision_is_exported_and_compared_in_float32(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    task = classifier()
    export._write_job(task, tmp_path, {"name": "x", "pair": False})
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    job = json.loads((tmp_path / "job.json").read_text())
    assert job["dtype_policy"] == "mixed_bfloat16"
    with np.load(tmp_path / "probe.npz") as arrays:
        inputs = {name[3:]: arrays[name] for name in arrays.files if name.startswith("in_")}
        expected = arrays["out_0"]
    keras.config.set_dtype_policy("float32")
    again = type(task).from_preset(tmp_path / "preset")
    np.testing.assert_allclose(outputs_of(again, inputs), expected, atol=1e-6)
