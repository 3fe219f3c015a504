"""`recipes/runs/ablations_bert.sh`: its commands and their order, run by a stand-in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "recipes" / "runs" / "ablations_bert.sh"
STAND_IN = '''#!{python}
"""Leave what a recipe leaves, and a line about the call."""
import json, os, sys
from pathlib import Path

arguments = sys.argv[1:]
flags = dict(zip(arguments, arguments[1:]))
output = Path(flags.get("--output", "."))
calls = Path(os.environ["CALLS"])
with calls.open("a") as lines:
    lines.write(json.dumps(arguments) + "\\n")
print("arguments were", *arguments)
if os.environ.get("FAILING", "nothing") in str(output):
    sys.exit("no room on the device")
if "--preset" in flags and not Path(flags["--preset"], "vocab.txt").exists():
    sys.exit("no preset in " + flags["--preset"])
kept = [output / "preset"] if "add_bilstm" not in arguments[0] else [output]
if "--presets-every" in flags:
    half = int(flags["--presets-every"])
    kept += [output / "presets" / f"step-{{step:08d}}" for step in (0, half)]
if "ablation_tables" not in arguments[0]:
    for folder in kept:
        folder.mkdir(parents=True)
        (folder / "vocab.txt").touch()
    (output / "finished.json").touch()
'''


@pytest.fixture
def ablations(tmp_path):
    stand_in = tmp_path / "bin" / "python"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    calls = tmp_path / "calls"

    def run(*flags, **environment):
        calls.write_text("")
        path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            [SCRIPT, "--data", "text/*.txt", "--output", tmp_path / "runs", *flags],
            env={**os.environ, "PATH": path, "CALLS": str(calls), "STEPS": "100", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return ended, [json.loads(line) for line in calls.read_text().splitlines()]

    return run


def named(calls, recipe):
    return [call for call in calls if call[0] == f"recipes/{recipe}.py"]


def value(call, flag):
    return call[call.index(flag) + 1]


ALL = ("--glue", "my glue", "--ner", "ner", "--squad", "squad", "--", "--quoted")


def test_every_model_of_the_tables_is_trained_and_none_twice(ablations, tmp_path):
    ended, calls = ablations(*ALL)
    assert ended.returncode == 0, ended.stderr
    pretrained, fine_tuned = named(calls, "pretrain"), named(calls, "finetune")
    assert (len(pretrained), len(named(calls, "add_bilstm")), len(fine_tuned)) == (12, 7, 51)
    assert all(value(call, "--data") == "text/*.txt" for call in pretrained)
    # one vocabulary for all, so base comes first
    assert ["--vocabulary" in call for call in pretrained] == [False] + [True] * 11
    assert value(pretrained[0], "--output") == f"{tmp_path}/runs/base/pretrain"
    mixes = [
        call[call.index("--mask-mix") + 1 :][:3] for call in pretrained if "--mask-mix" in call
    ]
    assert {" ".join(mix) for mix in mixes} == {
        "1 0 0",
        "0.8 0 0.2",
        "0.8 0.2 0",
        "0 0.2 0.8",
        "0 0 1",
    }
    assert {value(call, "--data") for call in fine_tuned if call[1] == "mrpc"} == {"my glue/MRPC"}
    assert all("--quoted" in call for call in fine_tuned)
    assert named(calls, "ablation_tables") == [calls[-1]]
    left = sorted(path.parent.name for path in (tmp_path / "runs").glob("*/*/preset"))
    assert left == ["pretrain"] * 12
    assert "arguments were recipes/finetune.py" in (tmp_path / "runs/base/mrpc.log").read_text()
    _, again = ablations(*ALL)
    assert again == named(again, "ablation_tables") and len(again) == 1


def test_what_failed_is_told_and_done_again(ablations):
    ended, calls = ablations(*ALL, FAILING="ltr/mnli")
    assert ended.returncode != 0 and not named(calls, "ablation_tables")
    assert "no room on the device" in ended.stderr
    assert "ltr/mnli: finished" not in ended.stdout and "ltr/qnli: finished" in ended.stdout
    ended, again = ablations(*ALL)
    assert ended.returncode == 0
    assert [value(call, "--output")[-8:] for call in named(again, "finetune")] == ["ltr/mnli"]
    assert not named(again, "pretrain")


def test_without_benchmarks_models_are_only_pretrained(ablations):
    ended, calls = ablations()
    assert ended.returncode == 0, ended.stderr
    assert len(named(calls, "pretrain")) == 12 and not named(calls, "finetune")


def test_a_flag_that_is_unknown_ends_it_before_any_run(ablations):
    ended, calls = ablations("--sqaud", "squad")
    assert ended.returncode == 2 and not calls
    assert "Received: --sqaud" in ended.stderr
