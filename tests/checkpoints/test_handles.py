import shutil
import sys
import types
from pathlib import Path

import pytest

from keras_bert3 import BertBackbone
from keras_bert3.checkpoints.handles import local_folder
from keras_bert3.checkpoints.huggingface import save_huggingface
from tests.checkpoints.models import assert_same_weights, backbone


def hugging_face(monkeypatch, source):
    """A client with one model, `me/mine`, at the folder `source`; it notes what it is asked."""
    asked = []

    def snapshot_download(repo_id, revision, allow_patterns):
        asked.append((repo_id, revision))
        if repo_id != "me/mine":
            raise RuntimeError("404 Client Error:\n no such repository")
        target = source.parent / f"snapshot{len(asked)}"
        target.mkdir()
        for pattern in allow_patterns:
            for file in source.glob(pattern):
                shutil.copy(file, target)
        return str(target)

    repository = types.SimpleNamespace(repo_id="me/mine", repo_type="model")
    client = types.SimpleNamespace(
        snapshot_download=snapshot_download,
        scan_cache_dir=lambda: types.SimpleNamespace(repos=[repository]),
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    return asked


def test_hugging_face(tmp_path, monkeypatch):
    saved = backbone(activation="gelu_erf")
    save_huggingface(saved, tmp_path / "hf")
    (tmp_path / "hf" / "pytorch_model.bin").write_bytes(b"not needed")
    asked = hugging_face(monkeypatch, tmp_path / "hf")
    assert_same_weights(saved, BertBackbone.from_preset("hf://me/mine@v2"))
    assert asked == [("me/mine", "v2")]
    assert not (tmp_path / "snapshot1" / "pytorch_model.bin").exists()


@pytest.mark.parametrize(
    ("needed", "others"),
    [
        # microsoft/deberta-v3-base, microsoft/deberta-base, a preset of ours or of KerasHub's
        (["pytorch_model.bin", "spm.model"], ["pytorch_model.generator.bin", "tf_model.h5"]),
        (["pytorch_model.bin", "bpe_encoder.bin"], ["rust_model.ot"]),
        (["model.weights.h5", "vocab.txt"], ["pytorch_model.bin"]),
    ],
)
def test_what_there_is_nothing_else_for_is_fetched(tmp_path, monkeypatch, needed, others):
    (tmp_path / "hf").mkdir()
    for name in (*needed, *others):
        (tmp_path / "hf" / name).write_bytes(b"x")
    hugging_face(monkeypatch, tmp_path / "hf")
    assert sorted(path.name for path in local_folder("hf://me/mine").iterdir()) == sorted(needed)


def test_an_unknown_name_lists_what_is_there(tmp_path, monkeypatch):
    hugging_face(monkeypatch, tmp_path)
    with pytest.raises(ValueError, match=r"\(hf://me/mine\). Received: 'hf://x/y' \(404") as caught:
        local_folder("hf://x/y")
    assert "\n" not in str(caught.value)


def test_kaggle(tmp_path, monkeypatch):
    name = "me/bert/keras/tiny"
    (tmp_path / "models" / name).mkdir(parents=True)
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))

    def model_download(handle):
        if handle != name:
            raise OSError("no network")
        return str(tmp_path / "models" / handle)

    client = types.SimpleNamespace(model_download=model_download)
    monkeypatch.setitem(sys.modules, "kagglehub", client)
    assert local_folder(f"kaggle://{name}") == tmp_path / "models" / name
    with pytest.raises(ValueError, match=rf"at hand \(kaggle://{name}\).*no network"):
        local_folder("kaggle://me/bert/keras/huge")


@pytest.mark.parametrize(
    ("handle", "package"), [("hf://a/b", "huggingface_hub"), ("kaggle://a/b/c/d", "kagglehub")]
)
def test_a_client_that_is_not_installed_is_named(monkeypatch, handle, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        local_folder(handle)


def test_paths_are_paths(tmp_path):
    assert local_folder(tmp_path) == tmp_path
    assert local_folder("some/folder") == Path("some/folder")
