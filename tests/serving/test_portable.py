import importlib.util

import keras
import numpy as np
import pytest

from keras_bert3.serving import export, portable
from keras_bert3.tasks.text_embedder import TextEmbedder
from tests.serving.conftest import classifier
from tests.tasks import toy

FILES = ("model.onnx", "model.tflite")


@pytest.fixture(scope="module")
def task():
    return classifier()


@pytest.fixture
def written(monkeypatch):
    """Files that hold a word, and a runtime that adds a number to what the task gives."""
    task, added = classifier(), {"by": 0.0}

    def write(folder):
        (folder / "model.onnx").write_text("new")

    def load(file):
        assert portable.Path(file).read_text() == "new"
        if isinstance(added["by"], Exception):
            raise added["by"]
        return lambda inputs: keras.ops.convert_to_numpy(task(inputs, training=False)) + added["by"]

    monkeypatch.setattr(export, "_run_apart", write)
    monkeypatch.setitem(portable.FORMATS, ".onnx", portable.Format("onnx", "onnx", ("json",), load))
    return task, added


def test_a_file_that_answers_the_same_is_kept(written, tmp_path):
    (tmp_path / "model.onnx").write_text("old")
    assert portable.export_file(written[0], tmp_path / "model.onnx") <= 1e-5
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_text() == "new"


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (1e-3, "a difference of 1.0"),
        (float("nan"), "a difference of nan"),
        (np.zeros((2, 1, 1)), "difference of inf"),
        (OSError("no\nfile"), "Expected a file that json runs at every shape.*OSError: no$"),
        (OSError(), "so nothing is exported. Received: OSError: $"),
    ],
)
def test_another_answer_is_never_left_as_a_file(written, tmp_path, by, message):
    written[1]["by"] = by
    (tmp_path / "model.onnx").write_text("old")
    with pytest.raises(ValueError, match=message):
        portable.export_file(written[0], tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_text() == "old"


def test_what_cannot_be_exported_is_refused_first(task, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"Expected a file of .onnx or .tflite. Received: 'x.pb'"):
        portable.export_file(task, tmp_path / "x.pb")
    with pytest.raises(ValueError, match="TextClassifier or TextEmbedder. Received: MaskedLM"):
        portable.export_file(toy.masked_lm(), tmp_path / "x.onnx")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for file, extra in zip(FILES, ("onnx", "litert"), strict=True):
        with pytest.raises(ImportError, match=rf"keras-bert3\[{extra}\]'. Received: no "):
            portable.export_file(task, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["classifier", "embedder"])
@pytest.mark.parametrize("file", FILES)
def test_other_runtimes_give_the_outputs_of_the_training_backend(task, tmp_path, file, kind):
    chosen = portable.FORMATS[portable.Path(file).suffix]
    for package in ("tensorflow", *chosen.packages):
        pytest.importorskip(package, exc_type=ImportError)
    if kind == "embedder":
        task = TextEmbedder(task.backbone)
    assert portable.export_file(task, tmp_path / file) <= 1e-5
    run = chosen.load(str(tmp_path / file))
    inputs = next(portable.batches(task))
    inputs = {name: np.repeat(value[:, :11], 4, 0) for name, value in inputs.items()}
    expected = keras.ops.convert_to_numpy(task(inputs, training=False))
    np.testing.assert_allclose(run(inputs), expected, atol=1e-5)
