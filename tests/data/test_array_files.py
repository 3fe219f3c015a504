"""Growing files and whole paths."""

import numpy as np
import pytest

from keras_bert3.data.array_files import ArrayWriter, whole_path


def test_rows_come_back_however_they_were_written(tmp_path):
    rows = np.arange(70_000 * 5).reshape(-1, 5)
    with ArrayWriter(tmp_path / "rows.npy", np.int64, (5,)) as writer:
        for block in np.split(rows, [1, 1, 10, 40_000]):
            writer.append(block)
    assert writer.num_rows == 70_000
    assert (np.load(tmp_path / "rows.npy", mmap_mode="r") == rows).all()


def test_no_rows(tmp_path):
    with ArrayWriter(tmp_path / "rows.npy", np.int64, (5,)) as writer:
        writer.append([])
    assert np.load(tmp_path / "rows.npy").shape == (0, 5)


def test_after_an_error_nothing_is_left(tmp_path):
    for make in (lambda path: path.write_text("half"), lambda path: path.mkdir()):
        with pytest.raises(KeyError), whole_path(tmp_path / "deep" / "name") as temporary:
            make(temporary)
            raise KeyError
        assert list((tmp_path / "deep").iterdir()) == []


def test_an_existing_path_is_refused_and_kept(tmp_path):
    path = tmp_path / "name"
    path.write_text("old")
    with pytest.raises(ValueError, match="which exists"), whole_path(path):
        pass
    assert path.read_text() == "old"
