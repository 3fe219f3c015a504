import json

import numpy as np
import pytest

from keras_bert3.training import checkpoint_files as files

ARRAYS = {"0": np.arange(6, dtype="float32").reshape(2, 3), "1": np.array(7, "int64")}


def test_what_was_written_is_read(tmp_path):
    path = files.write(tmp_path / "new", 12, ARRAYS, {"score": 0.5})
    arrays, step, notes = files.read(path)
    assert (step, notes, path.name) == (12, {"score": 0.5}, "step-00000012")
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path):
    files.write(tmp_path, 1, ARRAYS, {"score": 1})
    path = files.write(tmp_path, 1, ARRAYS, {"score": 2})
    assert files.read(path)[2] == {"score": 2}
    assert sorted(p.name for p in path.iterdir()) == ["checkpoint.json", "state.safetensors"]


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def edit(path):
    path.write_text(path.read_text().replace('"step": 5', '"step": 6'))


@pytest.mark.parametrize(
    ("name", "harm", "message"),
    [
        ("state.safetensors", flip, "checksum of state"),
        ("state.safetensors", lambda p: p.write_bytes(p.read_bytes()[:-1]), "bytes instead of"),
        ("state.safetensors", lambda p: p.unlink(), "cannot be read"),
        ("checkpoint.json", edit, "checksum of checkpoint.json"),
        ("checkpoint.json", lambda p: p.write_text(p.read_text()[:40]), "cannot be read"),
        ("checkpoint.json", lambda p: p.write_text("[]"), "cannot be read"),
    ],
)
def test_harm_is_noticed(tmp_path, name, harm, message):
    path = files.write(tmp_path, 5, ARRAYS, {})
    files.read(path)
    harm(path / name)
    with pytest.raises(files.BrokenCheckpoint, match=f"step-00000005.*{message}"):
        files.read(path)


def test_a_writer_that_dies_leaves_no_checkpoint(tmp_path, monkeypatch):
    def die(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.json, "dumps", die)
    with pytest.raises(KeyboardInterrupt):
        files.write(tmp_path, 5, ARRAYS, {})
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_no_checkpoint_and_is_removed(tmp_path):
    for step in (1, 2, 3):
        files.write(tmp_path, step, ARRAYS, {})
    (tmp_path / ".step-00000004.0123abcd.part").mkdir()
    (tmp_path / "step-notes").mkdir()
    assert files.steps(tmp_path) == [1, 2, 3] and files.steps(tmp_path / "none") == []
    files.remove_all_but(tmp_path, {1, 3})
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["step-00000001", "step-00000003", "step-notes"]


def test_a_later_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_FORMAT", 2)
    path = files.write(tmp_path, 1, ARRAYS, {})
    monkeypatch.undo()
    assert json.loads((path / "checkpoint.json").read_text())["format"] == 2
    with pytest.raises(files.BrokenCheckpoint, match="format 2, where this version reads 1"):
        files.read(path)
