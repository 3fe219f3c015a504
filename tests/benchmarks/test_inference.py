from keras_bert3.benchmarks.inference import SCITAIL, SNLI
from tests.benchmarks.files import real, write

SNLI_HEADER = (
    "index captionID pairID sentence1_binary_parse sentence2_binary_parse sentence1_parse "
    "sentence2_parse sentence1 sentence2 label1 gold_label"
)


def tabs(words):
    return words.replace(" ", "\t")


def test_G6_the_label_of_snli_is_the_last_field(tmp_path):
    row = "{}\tc\tp\tx\tx\tx\tx\tA man.\tA cat."
    rows = [
        row.format(0) + "\tneutral\tentailment",
        row.format(1) + "\tneutral\tneutral\tentailment\tneutral\tneutral\tcontradiction",
        row.format(2) + "\tneutral\t-",
    ]
    write(tmp_path / "dev.tsv", tabs(SNLI_HEADER), *rows)
    examples = SNLI.read(tmp_path, "dev")
    assert [len(r.split("\t")) for r in rows] == [11, 15, 11]
    assert examples.labels == ["entailment", "contradiction"]
    assert examples.columns == (["A man."] * 2, ["A cat."] * 2)
    assert examples.skipped == (4,), "annotators disagree"


def test_the_original_file_of_snli_has_its_label_first(tmp_path):
    header = "gold_label sentence1 sentence2 captionID pairID label1 label2"
    rows = ["neutral\ta\tb\tx\ty\tentailment\tneutral", "-\tc\td\tx\ty\tneutral\tentailment"]
    write(tmp_path / "snli_1.0_test.txt", tabs(header), *rows)
    examples = SNLI.read(tmp_path, "test")
    assert examples.labels == ["neutral"] and examples.inputs == (["a"], ["b"])


def test_scitail_says_entails(tmp_path):
    write(tmp_path / "scitail_1.0_dev.tsv", "a\tb\tentails", "c\td\tneutral")
    examples = SCITAIL.read(tmp_path, "dev")
    assert examples.labels == ["entailment", "neutral"] and examples.inputs == (
        ["a", "c"],
        ["b", "d"],
    )


def test_real_snli():
    assert len(SNLI.read(real("glue", "SNLI/dev.tsv"), "dev", is_quoted=True)) == 9842
    subset = SNLI.read(real("glue", "SNLI/dev_sub.tsv"), "dev")
    assert {name: subset.known_labels().count(name) for name in SNLI.labels} == {
        "entailment": 346,
        "neutral": 328,
        "contradiction": 326,
    }
