import dataclasses
import json

import keras
import pytest

from keras_bert3.runs.run_directory import describe_environment, new_run


@dataclasses.dataclass
class Config:
    steps: int = 3
    layers: tuple[int, ...] = (1, 2)


def test_a_run_leaves_its_settings_and_surroundings(tmp_path):
    with new_run(tmp_path / "run", Config()) as folder:
        (folder / "metrics.csv").touch()
    assert json.loads((folder / "config.json").read_text()) == {"steps": 3, "layers": [1, 2]}
    environment = json.loads((folder / "environment.json").read_text())
    assert environment == describe_environment()
    assert environment["backend"] == keras.backend.backend()
    assert environment["packages"]["keras"] == keras.__version__


def test_another_run_is_not_overwritten(tmp_path):
    other = '{"width": 3}'
    (tmp_path / "config.json").write_text(other)
    with pytest.raises(ValueError, match="new or empty.*Received: .* which holds config.json"):
        with new_run(tmp_path, Config()):
            pass
    assert (tmp_path / "config.json").read_text() == other


def test_an_unfinished_run_of_the_same_settings_goes_on(tmp_path):
    with pytest.raises(KeyError):
        with new_run(tmp_path / "run", Config()) as folder:
            (folder / "metrics.csv").write_text("step\n1\n")
            raise KeyError
    with pytest.raises(ValueError, match=r"same settings.*config.json with steps 3 \(now 4\)"):
        with new_run(folder, Config(4)):
            pass
    with new_run(folder, Config()):
        assert (folder / "metrics.csv").read_text() == "step\n1\n"
    with pytest.raises(ValueError, match="which holds config.json, a finished run"):
        with new_run(folder, Config()):
            pass


def test_a_setting_newer_than_the_run_is_refused_unless_it_is_the_default(tmp_path):
    (tmp_path / "config.json").write_text('{"steps": 3}')
    with pytest.raises(ValueError, match=r"layers \[1, 2\] \(now \[5\]\)"):
        with new_run(tmp_path, Config(layers=(5,))):
            pass
    with new_run(tmp_path, Config()):
        pass


def test_a_run_that_goes_on_and_fails_at_once_is_kept(tmp_path):
    (tmp_path / "config.json").write_text('{"steps": 3}')
    with pytest.raises(KeyError):
        with new_run(tmp_path, Config()):
            raise KeyError
    assert (tmp_path / "config.json").exists()


def test_two_processes_do_not_work_on_one_run(tmp_path):
    pytest.importorskip("fcntl")
    with new_run(tmp_path / "run", Config()) as folder:
        (folder / "metrics.csv").touch()
        with pytest.raises(ValueError, match="on which another process is working"):
            with new_run(folder, Config()):
                pass


def test_a_run_that_fails_before_its_first_result_leaves_nothing(tmp_path):
    with pytest.raises(KeyError):
        with new_run(tmp_path / "run", Config()) as folder:
            (folder / "corpus").mkdir()
            raise KeyError
    assert not folder.exists()


def test_a_run_that_fails_later_keeps_its_results(tmp_path):
    with pytest.raises(KeyError):
        with new_run(tmp_path / "run", Config()) as folder:
            (folder / "metrics.csv").touch()
            raise KeyError
    assert folder.exists()
