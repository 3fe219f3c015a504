import json
import math

import numpy as np
import pytest

from keras_bert3 import CausalLM, CausalLMPreprocessor, GPTBackbone
from keras_bert3.runs import zero_shot
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from tests.layer_checks import to_numpy

TEXTS = ["the cat very much sat on the mat because the dog sang", "a positive negative bird so"] * 2
TOKENIZER = train_byte_pair(TEXTS, 60, "bert")


@pytest.fixture(scope="module")
def task():
    backbone = GPTBackbone(TOKENIZER.vocabulary_size, 1, 2, 8, 16, max_sequence_length=32)
    generator = np.random.default_rng(0)
    for weight in backbone.trainable_weights:
        weight.assign(generator.normal(0, 0.7, weight.shape))
    return CausalLM(backbone, CausalLMPreprocessor(TOKENIZER))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "copa.xml").write_text(
        '<c><item id="1" asks-for="cause" most-plausible-alternative="1"><p>The cat sat.</p>'
        "<a1>the dog sang</a1><a2>a bird sang</a2></item></c>"
    )
    (tmp_path / "dpr.txt").write_text(
        "The cat sat because it sang.\nit\nthe cat,the mat\nthe mat\n"
    )
    (tmp_path / "sst2.tsv").write_text("sentence\tlabel\nthe cat sang\t1\na bird sat\t0\n")
    rows = [f"x\t{i % 2}\t\t{text}" for i, text in enumerate(["the cat sat", "sat the a"] * 4)]
    (tmp_path / "cola.tsv").write_text("\n".join(rows) + "\n")
    names = {"copa": "copa.xml", "dpr": "dpr.txt", "sst2": "sst2.tsv", "cola": "cola.tsv"}
    return [f"{name}={tmp_path / file}" for name, file in names.items()]


def mean_log_probability(task, context, continuation):
    before, after = TOKENIZER(context), TOKENIZER(continuation)
    ids = [*before, *after]
    row, mask = np.zeros((2, 1, 24), "int32")  # one length: JAX compiles for each
    row[0, : len(ids)], mask[0, : len(ids)] = ids, 1
    logits = to_numpy(task({"token_ids": row, "padding_mask": mask}))[0]
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.mean([logs[len(before) + i - 1, token] for i, token in enumerate(after)])


def test_each_task_compares_the_papers_stretches(task, files):
    examples = zero_shot.read_all(files)
    assert examples["copa"] == [(["The cat sat because"] * 2, ["the dog sang", "a bird sang"], 0)]
    assert examples["dpr"] == [
        (["The cat sat because the cat", "The cat sat because the mat"], ["sang."] * 2, 1)
    ]
    assert examples["sst2"][0] == (["the cat sang very"] * 2, ["negative", "positive"], 1)
    for name in ("copa", "dpr", "sst2"):
        row = zero_shot.measure(task, name, examples[name])
        right = [
            np.argmax([mean_log_probability(task, *pair) for pair in zip(a, b, strict=True)]) == y
            for a, b, y in examples[name]
        ]
        assert (row["score"], row["n"], row["chance"]) == (np.mean(right), len(right), 0.5)
        assert row["error"] == pytest.approx(0.5 / math.sqrt(len(right)))
    assert len(zero_shot.read_all(files, most=1)["sst2"]) == 1


def test_the_threshold_of_cola_comes_from_the_other_half(task, files):
    examples = zero_shot.read_all(files)["cola"]
    assert examples[:2] == [("the cat sat", 0), ("sat the a", 1)]
    row = zero_shot.measure(task, "cola", examples)
    # Two texts, each with a label of its own: a threshold tells them apart if acceptable ones
    # score higher, and lets everything pass otherwise.
    bad, good = (
        mean_log_probability(task, text.split()[0], text.split(maxsplit=1)[1])
        for text in ("the cat sat", "sat the a")
    )
    assert row["score"] == pytest.approx(1.0 if good > bad else 0.0)
    assert (row["n"], row["metric"]) == (4, "Matthews correlation")


def test_matthews_correlation():
    labels, guesses = np.array([1, 1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 1, 1])
    tp, tn, fp, fn = 3, 1, 1, 1
    wanted = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert zero_shot.matthews(labels, guesses) == pytest.approx(wanted)
    assert zero_shot.matthews(labels, np.ones(6)) == 0.0


def test_settings_name_a_task_and_a_file_with_answers(tmp_path):
    for setting in ("mnli=file", "copa"):
        with pytest.raises(ValueError, match=f"task=file.*Received: '{setting}'"):
            zero_shot.read_all([setting])
    row = {"premise": "a", "choice1": "b", "choice2": "c", "question": "cause"}
    (tmp_path / "copa.jsonl").write_text(json.dumps(row))
    with pytest.raises(ValueError, match="examples with answers in '.*copa.jsonl'. Received: none"):
        zero_shot.read_all([f"copa={tmp_path / 'copa.jsonl'}"])
    for presets, run in (((), None), (("a",), "b")):
        with pytest.raises(ValueError, match=f"either presets or a run.*run={run}"):
            zero_shot.models_of(presets, run)


def test_questions_stand_between_document_and_answers(tmp_path):
    questions = [{"question": "Who?", "choice": ["He.", "She."], "answer": "She."}]
    (tmp_path / "dream.json").write_text(json.dumps([[["M: Me?", "W: No."], questions, "1"]]))
    (question,) = zero_shot.read_all([f"dream={tmp_path / 'dream.json'}"])["dream"]
    assert question == (["M: Me?\nW: No.\nWho?"] * 2, ["He.", "She."], 1)
    (tmp_path / "arc.csv").write_text("Q?,a,b,c,,B\n")
    with pytest.raises(ValueError, match="Received: none"):  # a choice is missing
        zero_shot.read_all([f"arc_easy={tmp_path / 'arc.csv'}"])


def row_of(model, task, chance, score):
    numbers = {"n": 9, "metric": "accuracy", "chance": chance, "error": 0.1, "score": score}
    return {"model": model, "task": task, **numbers}


def test_tables_and_curves(tmp_path):
    assert zero_shot.line(row_of(0, "copa", 0.5, 0.6)) == (
        "| copa     |     9 | accuracy | 0.500 ± 0.100 | 0.600 |"
    )
    rows = [
        row_of(80, "copa", 0.5, 0.75),
        row_of(80, "cola", 0.0, 0.1),
        row_of(0, "copa", 0.5, 0.4),
    ]
    rows.append(row_of(0, "cola", 0.0, -0.1))
    zero_shot.save(tmp_path, rows)
    assert (tmp_path / "results.md").read_text().splitlines() == [
        "| steps | copa | cola |",
        "| --- | --- | --- |",
        "| examples | 9 | 9 |",
        "| guessing | 0.500 ± 0.100 | 0.000 ± 0.100 |",
        "| 80 | 0.750 | 0.100 |",
        "| 0 | 0.400 | -0.100 |",
    ]
    assert json.loads((tmp_path / "results.json").read_text()) == rows
    curves = zero_shot.curves(rows)
    assert curves["copa"] == [(0, pytest.approx(-0.2), 0.2), (80, pytest.approx(0.5), 0.2)]
    assert curves["cola"] == [(0, -0.1, 0.1), (80, 0.1, 0.1)]
