"""The paper's tables with what our runs reached."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

from keras_bert3.runs.ablation_tables import TABLES, markdown

RECIPE = Path(__file__).parents[2] / "recipes" / "ablation_tables.py"


@pytest.fixture
def runs(tmp_path):
    def write(path, content):
        (tmp_path / path).mkdir(parents=True)
        file = "evaluation" if path.endswith("pretrain") else "results"
        (tmp_path / path / f"{file}.json").write_text(json.dumps(content))

    write("base/pretrain", {"masked_lm_loss": math.log(20.0)})
    write("base/mnli", {"best": {"accuracy": 0.512, "f1": 0.1}})
    write("no-nsp/squad1", {"best": {"f1": 12.34, "exact": 8.0}})  # SQuAD's is in percent already
    write("mix-0-0-100/ner-features", {"best": {"f1": 0.25}})
    return tmp_path


def test_each_run_stands_beside_the_papers_numbers(runs):
    tables = {table.title.split(":")[0]: markdown(runs, table) for table in TABLES}
    lines = {name: text.splitlines() for name, text in tables.items()}
    assert (
        "| BERT base | 84.4 | 51.2 | 88.4 | - | 86.7 | - | 92.7 | - | 88.5 | - |"
        in lines["Table 5"]
    )
    assert (
        "| No NSP | 83.9 | - | 84.9 | - | 86.5 | - | 92.6 | - | 87.9 | 12.3 |" in lines["Table 5"]
    )
    middle = "| 12x768, ours 2x128 | 3.99 | 20.00 | 84.4 | 51.2 | 86.7 | - | 92.9 | - |"
    assert middle in lines["Table 6"]
    assert "| 0 / 0 / 100 | 83.6 | - | 94.9 | - | 94.6 | 25.0 |" in lines["Table 8"]
    assert "| none | - | - |" in lines["Appendix C.1"]


def test_tables_without_a_run_are_left_out(runs, capsys):
    spec = importlib.util.spec_from_file_location("ablation_tables_recipe", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    text = recipe.main([str(runs)])
    assert "Table 7" not in text and text.count("Table") == 3
    assert (runs / "tables.md").read_text() == text
    assert text in capsys.readouterr().out
