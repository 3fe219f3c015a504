"""`recipes/finetune.py` from files to results, and the lines of docs/finetuning.md."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_bert3 as kb
from keras_bert3.runs.fine_tuning_report import curves
from tests.tasks import toy

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "finetuning.md").read_text("utf-8"), re.DOTALL
)
PAIRS = [("the cat sat", "a cat sat", 1), ("the dog ran", "a log slept", 0)] * 4


def load():
    path = ROOT / "recipes" / "finetune.py"
    spec = importlib.util.spec_from_file_location("finetune_recipe", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset") / "bert"
    toy.masked_lm().save_to_preset(folder)
    return str(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("MRPC")
    rows = "".join(f"{y}\t{i}\t{i}\t{a}\t{b}\n" for i, (a, b, y) in enumerate(PAIRS))
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text(header + rows)
    hidden = "".join(f"{i}\t0\t0\t{a}\t{b}\n" for i, (a, b, _) in enumerate(PAIRS[:3]))
    (folder / "test.tsv").write_text("index\t" + header.partition("\t")[2] + hidden)
    return str(folder)


def flags(preset, data, output):
    paths = ["--preset", preset, "--data", data, "--output", str(output)]
    return ["mrpc", *paths, "--sequence-length", "16", "--batch-size", "4", "--epochs", "2"]


@pytest.fixture(scope="module")
def run(preset, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "mrpc"
    rates = ["--learning-rates", "0.01", "1e-9", "--class-weights", "--ensemble", "2"]
    rates += ["--by-length", "--lora-rank", "2"]
    return folder, load().main([*flags(preset, data, folder), *rates])


def test_results(run):
    folder, results = run
    assert json.loads((folder / "results.json").read_text()) == results
    assert [(row["learning_rate"], row["runs"]) for row in results["learning_rates"]] == [
        (0.01, 1),
        (1e-9, 1),
    ]
    assert results["metric"] == "f1" and results["more"] == {"mrpc/test": {}}
    best = max(results["runs"], key=lambda row: row["f1"])
    assert results["best"] == best
    assert f"| 0.01 | 1 | {results['runs'][0]['f1']:.4f} |" in (folder / "results.md").read_text()
    assert len((folder / "metrics.csv").read_text().splitlines()) == 1 + 2 * 2
    settings = json.loads((folder / "config.json").read_text())
    assert (settings["epochs"], settings["seeds"], settings["seed"]) == (2, 1, 12345)


def test_the_best_model_is_kept_and_answers_the_test_file(run):
    folder, results = run
    task = kb.TextClassifier.from_preset(folder / "preset")
    assert task.labels == ["not_equivalent", "equivalent"]
    outputs = task.predict(([a for a, _, _ in PAIRS], [b for _, b, _ in PAIRS]), verbose=0)
    right = [row.argmax() == y for row, (_, _, y) in zip(outputs, PAIRS, strict=True)]
    assert sum(right) / len(right) == results["best"]["accuracy"]
    answers = "".join(f"{i}\t{row.argmax()}\n" for i, row in enumerate(outputs[:3]))
    assert (folder / "submission" / "MRPC.tsv").read_text() == "index\tprediction\n" + answers
    assert "kb.TextClassifier.from_preset" in (folder / "preset" / "README.md").read_text()


def test_runs_answer_together_by_their_mean(run):
    folder, results = run
    both = [np.load(folder / "outputs" / f"{rate}-12345.npz") for rate in ("0.01", "1e-09")]
    for file in both:
        np.testing.assert_allclose(file["dev"].sum(-1), 1)
    mean = sum(file["dev"] for file in both).argmax(-1)
    right = [guess == y for guess, (_, _, y) in zip(mean, PAIRS, strict=True)]
    assert results["ensemble"]["accuracy"] == sum(right) / len(right)
    mean = sum(file["test"] for file in both).argmax(-1)
    rows = (folder / "ensemble" / "MRPC.tsv").read_text().splitlines()[1:]
    assert rows == [f"{i}\t{guess}" for i, guess in enumerate(mean)]
    assert "The best 2 together: f1" in (folder / "results.md").read_text()


def test_curves_are_drawn_of_every_epoch(run):
    folder, _ = run
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    points = curves(folder)
    assert {name: [x for x, _, _ in row] for name, row in points.items()} == {
        "0.01, seed 12345": [1.0, 2.0],
        "1e-09, seed 12345": [1.0, 2.0],
    }


def test_a_finished_run_is_not_done_again(run, preset, data):
    folder, _ = run
    with pytest.raises(ValueError, match="a finished run"):
        load().main([*flags(preset, data, folder), "--learning-rates", "0.01"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mrcp"], "Expected a benchmark among .*'mrpc'.* Received: 'mrcp'"),
        (["ax"], "with a training set. Received: 'ax'"),
        (["stsb", "--class-weights"], "with classes to weigh. Received: 'stsb'"),
        (["mrpc", "--ensemble", "5"], "up to 4 runs, .* Received: ensemble=5"),
        (["conll2003", "--ensemble", "2"], "choices to average. Received: CoNLL-2003"),
        (["mrpc", "--lora-rank", "0"], "Received: lora_rank=0"),
        (["mrpc", "--epochs", "0"], "Received: epochs=0"),
        (["mrpc", "--learning-rates", "-1.0"], r"Received: learning_rates=\(-1.0,\)"),
        (["mrpc", "--sequence-length", "33"], "sequence_length up to 32.* Received: 33"),
        (["mrpc", "--sequence-length", "16", "--frozen-layers", "2"], "up to 1. Received: 2"),
        (["mrpc", "--validation", "absent.tsv"], "Received: 'absent.tsv'"),
        (["mrpc", "--data", "absent"], "`data` to be a folder. Received: 'absent'"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(arguments, message, preset, data, tmp_path):
    given = {"--preset": preset, "--data": data, "--output": str(tmp_path / "run")}
    rest = [
        word for name, value in given.items() if name not in arguments for word in (name, value)
    ]
    with pytest.raises(ValueError, match=message):
        load().main([*arguments, *rest])
    assert not (tmp_path / "run").exists()


def test_a_table_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in BLOCKS if "csv" in block]
    assert len(code.splitlines()) < 15
    rows = [
        f'"{text}, all day",{label}\n' for text, label in zip(toy.TEXTS, "abab" * 3, strict=True)
    ]
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(rows))
    toy.masked_lm().save_to_preset("bert-base-uncased")
    exec(compile(code, "finetuning.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("[('")
    assert kb.TextClassifier.from_preset("my_classifier").labels == ["a", "b"]
