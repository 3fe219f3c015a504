import logging

import pytest

from keras_bert3.benchmarks import glue
from tests.benchmarks.files import real, write

MNLI_HEADER = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse "
    "sentence2_parse sentence1 sentence2 label1 gold_label"
)


def tabs(words):
    return words.replace(" ", "\t")


def test_G1_labels_are_names_whatever_a_models_order_is(tmp_path):
    row = "{}\tx\tx\tx\tx\tx\tx\tx\ta\tb\tneutral\t{}"
    labels = ["contradiction", "entailment", "neutral"]
    rows = [row.format(i, label) for i, label in enumerate(labels)]
    write(tmp_path / "dev_matched.tsv", tabs(MNLI_HEADER), *rows)
    examples = glue.MNLI.read(tmp_path, "dev")
    assert examples.labels == labels and glue.MNLI.labels[0] == "entailment"
    head = ("contradiction", "entailment", "neutral")  # a model with another order of outputs
    outputs = [0, 1, 2]
    predicted = [head[i] for i in outputs]
    assert glue.MNLI.score(examples, predicted) == {"accuracy": 1.0}
    with pytest.raises(ValueError, match="Expected labels among.*Received: 0"):
        glue.MNLI.score(examples, outputs)


def test_G2_test_files_have_no_labels(tmp_path):
    for name, rows in {
        "a.tsv": ["index\tsentence1\tsentence2", "0\ta\tb"],
        "b.tsv": ["index\tsentence1\tsentence2\tlabel", "0\ta\tb\t-1"],
    }.items():
        write(tmp_path / name, *rows)
        examples = glue.RTE.read(tmp_path / name, "test")
        assert examples.labels is None and len(examples) == 1
        with pytest.raises(ValueError, match="no labels"):
            glue.RTE.score(examples, ["entailment"])
    records = [{"sentence1": "a", "sentence2": "b", "label": -1, "idx": 7}]
    fetched = glue.RTE.from_hub(records)
    assert fetched.labels is None and fetched.ids == ["7"]


def test_G3_rows_with_missing_columns_are_skipped_and_counted(tmp_path, caplog):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    rows = ["1\t2\t3\tq a\tq b\t0", "4\t5\t6", "7\t8\t9\tq c\tq d\t1"]
    write(tmp_path / "train.tsv", header, *rows)
    with caplog.at_level(logging.WARNING):
        examples = glue.QQP.read(tmp_path, "train")
    assert examples.columns == (["q a", "q c"], ["q b", "q d"])
    assert examples.labels == ["not_duplicate", "duplicate"]
    assert examples.skipped == (3,)
    assert "Skipped 1 lines" in caplog.text and "line 3: 3 of 6 fields" in caplog.text


def test_G4_quotation_marks_are_text(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = ['1\t1\t2\t"He left\tHe "left', '0\t3\t4\tShe said "\tShe left"']
    write(tmp_path / "train.tsv", header, *rows)
    examples = glue.MRPC.read(tmp_path, "train")
    assert len(examples) == 2
    assert examples.columns == (['"He left', 'She said "'], ['He "left', 'She left"'])
    assert examples.labels == ["equivalent", "not_equivalent"]
    quoted = 'index\tlabel\tsentence1\tsentence2\n0\t1\t"a ""b"" c"\td\n'
    write(tmp_path / "quoted.tsv", quoted.rstrip("\n"))
    examples = glue.MRPC.read(tmp_path / "quoted.tsv", "dev", is_quoted=True)
    assert examples.columns == (['a "b" c'], ["d"]) and examples.ids == ["0"]


def test_G5_only_the_test_file_of_cola_has_a_header(tmp_path):
    write(tmp_path / "train.tsv", "gj04\t1\t\tFirst.", "gj04\t0\t*\tSecond.")
    write(tmp_path / "test.tsv", "index\tsentence", "0\tThird.")
    train, test = (glue.COLA.read(tmp_path, split) for split in ("train", "test"))
    assert train.inputs == ["First.", "Second."]
    assert train.labels == ["acceptable", "unacceptable"]
    assert test.inputs == ["Third."] and test.labels is None


def test_G7_texts_are_left_as_they_stand(tmp_path):
    text = "[NP and PP]  it 's \u2028 caf\u00e9\u0085 "
    write(tmp_path / "train.tsv", f"x\t1\t\t{text}")
    assert glue.COLA.read(tmp_path, "train").inputs == [text]
    write(tmp_path / "dev.tsv", "sentence\tlabel", f"{text}\t1")
    assert glue.SST2.read(tmp_path, "dev").inputs == [text]


def test_similarities_are_numbers(tmp_path):
    write(tmp_path / "dev.tsv", "index\tsentence1\tsentence2\tscore", "0\ta\tb\t4.750")
    examples = glue.STSB.read(tmp_path, "dev")
    assert examples.labels == [4.75] and glue.STSB.num_classes == 1
    assert glue.STSB.write_submission(tmp_path, [5.2, -1.0, 2.34567]).read_text() == (
        "index\tprediction\n0\t5.000\n1\t0.000\n2\t2.346\n"
    )


@pytest.mark.parametrize(
    ("name", "predicted", "file", "lines"),
    [
        ("cola", ["acceptable", "unacceptable"], "CoLA.tsv", ["1", "0"]),
        ("rte", ["not_entailment", "entailment"], "RTE.tsv", ["not_entailment", "entailment"]),
        ("wnli", ["not_entailment", "entailment"], "WNLI.tsv", ["0", "1"]),
        ("mnli_mismatched", ["neutral"], "MNLI-mm.tsv", ["neutral"]),
        ("ax", ["contradiction"], "AX.tsv", ["contradiction"]),
    ],
)
def test_submissions(tmp_path, name, predicted, file, lines):
    path = glue.BENCHMARKS[name].write_submission(tmp_path / "out", predicted)
    rows = [f"{i}\t{line}\n" for i, line in enumerate(lines)]
    assert path.name == file and path.read_text() == "index\tprediction\n" + "".join(rows)
    with pytest.raises(ValueError, match="Received: 'other'"):
        glue.BENCHMARKS[name].write_submission(tmp_path / "new", ["other"])
    assert not (tmp_path / "new").exists()


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"Expected a split among \['dev', 'test', 'train'\]"):
        glue.RTE.read(tmp_path, "valid")
    with pytest.raises(ValueError, match=r"one of \['train.tsv'\] for split 'train'"):
        glue.RTE.read(tmp_path, "train")
    write(tmp_path / "train.tsv", "index\tsentence1\tlabel", "0\ta\tentailment")
    with pytest.raises(ValueError, match="Expected a column 'sentence2' or 'hypothesis'"):
        glue.RTE.read(tmp_path, "train")
    write(tmp_path / "dev.tsv", "sentence1\tsentence2\tlabel", "a\tb\tmaybe")
    with pytest.raises(ValueError, match="in line 2 of .*dev.tsv'. Received: 'maybe'"):
        glue.RTE.read(tmp_path, "dev")


@pytest.mark.parametrize(
    ("name", "file", "split", "count", "is_quoted"),
    [
        ("cola", "CoLA/train.tsv", "train", 8551, False),
        ("cola", "CoLA/dev.tsv", "dev", 1043, False),
        ("sst2", "SST-2/train.tsv", "train", 67349, False),
        ("mrpc", "MRPC/train.tsv", "train", 3668, True),
        ("mrpc", "MRPC/dev.tsv", "dev", 408, True),
        ("stsb", "STS-B/train.tsv", "train", 5749, False),
        ("stsb", "STS-B/dev.tsv", "dev", 1500, False),
        ("qnli", "QNLI/dev.tsv", "dev", 5463, False),
        ("rte", "RTE/train.tsv", "train", 2490, False),
        ("rte", "RTE/dev.tsv", "dev", 277, False),
        ("wnli", "WNLI/dev.tsv", "dev", 71, False),
        ("mnli", "MNLI/dev_sub.tsv", "dev", 1000, False),
        ("qqp", "QQP/dev_sub.tsv", "dev", 1000, False),
    ],
)
def test_real_files(name, file, split, count, is_quoted):
    examples = glue.BENCHMARKS[name].read(real("glue", file), split, is_quoted)
    assert len(examples) == count and not examples.skipped
    assert len(set(examples.known_labels())) >= 2
    assert all(text for column in examples.columns for text in column)
