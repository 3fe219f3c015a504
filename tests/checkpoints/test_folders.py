import pytest

from keras_bert3.checkpoints.folders import new_folder, read_json, write_json


def fill(folder, overwrite=False, text="new"):
    with new_folder(folder, overwrite) as fresh:
        write_json(fresh / "config.json", {"model_type": text})


def test_a_folder_appears_whole(tmp_path):
    with new_folder(tmp_path / "a" / "b") as fresh:
        assert not (tmp_path / "a" / "b").exists()
        write_json(fresh / "config.json", {})
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_or_not_at_all(tmp_path):
    fill(tmp_path / "p", text="old")
    with pytest.raises(KeyError), new_folder(tmp_path / "p", overwrite=True) as fresh:
        write_json(fresh / "config.json", {"model_type": "half"})
        raise KeyError
    assert read_json(tmp_path / "p" / "config.json") == {"model_type": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_only_a_checkpoint_is_replaced_and_only_on_request(tmp_path):
    fill(tmp_path / "p", text="old")
    with pytest.raises(ValueError, match="overwrite=True. Received: .*which holds files"):
        fill(tmp_path / "p")
    fill(tmp_path / "p", overwrite=True)
    assert read_json(tmp_path / "p" / "config.json") == {"model_type": "new"}
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").touch()
    with pytest.raises(ValueError, match="Expected a checkpoint to overwrite"):
        fill(tmp_path / "photos", overwrite=True)
    write_json(tmp_path / "photos" / "config.json", {"steps": 1000})
    with pytest.raises(ValueError, match="Expected a checkpoint to overwrite"):
        fill(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "one.jpg").exists()
    with pytest.raises(ValueError, match="Received: the file"):
        fill(tmp_path / "photos" / "one.jpg", overwrite=True)


@pytest.mark.parametrize("content", ["{", "[1]", pytest.param("[" * 100_000, id="deep"), None])
def test_broken_json_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match="config.json'. Received: "):
        read_json(tmp_path / "config.json")
