"""The README's code runs as it stands there, but for the number of sentences and epochs."""

import re
from pathlib import Path

import keras_bert3 as kb

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_quick_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = BLOCKS[0]
    for old, new in (("[:4000]", "[:400]"), ("epochs=2", "epochs=1, verbose=0")):
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[(")
    assert kb.MaskedLM.from_preset("my_bert").fill_mask("a [MASK].", top_k=1)


def test_rows_of_a_csv_file_are_classified(tmp_path, monkeypatch, capsys):
    from tests.tasks import toy

    monkeypatch.chdir(tmp_path)
    toy.masked_lm(max_sequence_length=64).save_to_preset("my_bert")
    lines = ["text,label", '"the cat sat, and slept",good', "a dog ran,bad"] * 4
    Path("reviews.csv").write_text("\n".join(lines[:1] + [x for x in lines if x != lines[0]]))
    (code,) = [block for block in BLOCKS if "reviews.csv" in block]
    assert len(code.strip().splitlines()) < 15
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith(("[('good', ", "[('bad', "))
    assert kb.TextClassifier.from_preset("my_classifier").labels == ["bad", "good"]


def test_layers_block():
    (code,) = [block for block in BLOCKS if "TransformerBlock(" in block]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["block"].attention.num_heads == 12


def test_checkpoint_block(tmp_path, monkeypatch):
    from tests.tasks import toy

    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in BLOCKS if "save_huggingface" in block]
    kb.checkpoints.save_huggingface(toy.masked_lm(), "bert-base-uncased")
    exec(compile(code, "README.md", "exec"), {"kb": kb})
    assert (tmp_path / "for_transformers" / "model.safetensors").exists()
