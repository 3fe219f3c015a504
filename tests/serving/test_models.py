import struct

import pytest

from keras_bert3.serving import models
from keras_bert3.serving.library import ServingError


class Session:
    """One that loads nothing, and remembers that it was closed."""

    closed: list[str] = []

    def __init__(self, folder, threads):
        self.name = folder.name

    def run(self, signature, inputs):
        raise AssertionError("no request was given")

    def close(self):
        self.closed.append(self.name)


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "SavedModelSession", Session)
    monkeypatch.setattr(Session, "closed", [])
    (tmp_path / "1").mkdir()
    return models.Model(tmp_path)


def number_of(model):
    with model.use() as version:
        return version.number


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"\xff"])
def test_a_version_with_a_broken_report_is_left_out_and_the_next_is_taken(model, content):
    broken = model.directory / "2"
    broken.mkdir()
    (broken / "export.json").write_bytes(content)
    model.refresh()
    assert number_of(model) == 1
    with pytest.raises(ServingError, match="Expected a whole version in"):
        models.Model(model.directory)
    (model.directory / "3").mkdir()
    model.refresh()
    assert number_of(model) == 3


@pytest.mark.parametrize("record", [b"\x00", struct.pack("<Q", 3) + bytes(11)])
def test_a_version_with_broken_warm_up_requests_is_freed_again(model, record):
    folder = model.directory / "2" / "assets.extra"
    folder.mkdir(parents=True)
    (folder / "tf_serving_warmup_requests").write_bytes(record)
    for _ in range(models.RETRIES + 2):
        model.refresh()
    assert number_of(model) == 1 and Session.closed == ["2"] * models.RETRIES


def test_a_version_in_use_is_freed_after_its_last_request(model):
    with model.use() as old:
        (model.directory / "2").mkdir()
        model.refresh()
        with model.use() as new:
            assert (old.number, new.number) == (1, 2)
        assert Session.closed == []
    assert Session.closed == ["1"]
    with pytest.raises(ServingError, match="Expected version 2 of"), model.use(1):
        pass
    model.close()
    assert Session.closed == ["1", "2"]


def test_a_folder_without_versions_is_refused(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(ServingError, match="Expected numbered versions"):
        models.Model(tmp_path)
