import importlib

import pytest

from keras_bert3.serving import export
from tests.tasks import toy


@pytest.fixture
def main():
    pytest.importorskip("tyro")
    return importlib.import_module("recipes.export").main


def test_the_settings_reach_the_export(main, tmp_path, monkeypatch, capsys):
    """What an export writes is tested in tests/serving; here it would only take time."""
    given = []
    monkeypatch.setattr(export, "export_saved_model", lambda *a: given.append(a) or tmp_path / "7")
    toy.masked_lm(num_layers=1).save_to_preset(tmp_path / "preset")
    target = str(tmp_path / "sm")
    main(["--model", str(tmp_path / "preset"), "--output", target, "--pair", "--name", "x"])
    (task, *rest), *others = given
    assert not others and rest == [target, True, "x"]
    assert type(task).__name__ == "MaskedLM"
    assert capsys.readouterr().out == f"exported MaskedLM to {tmp_path / '7'}\n"


def test_a_folder_without_a_task_is_refused(main, tmp_path):
    with pytest.raises(ValueError, match="Expected"):
        main(["--model", str(tmp_path), "--output", str(tmp_path / "sm")])
    assert not (tmp_path / "sm").exists()


def test_help_needs_no_keras(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--output" in capsys.readouterr().out
