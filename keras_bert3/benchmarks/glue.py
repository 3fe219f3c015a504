"""GLUE (Wang et al. 2018): nine tasks and the diagnostics, as files of gluebenchmark.com.

The order of the classes is that of the package `datasets`. Models from elsewhere may have another:
labels are names here, and a model's own names say which output is meant.

Quotation marks are text in all of these files. The header of CoLA stands in its test file alone.
Published systems leave WNLI out or answer it with its majority class (Devlin et al. 2018,
section 4.1).
"""

from keras_bert3.benchmarks.text_benchmark import TextBenchmark

ENTAILMENT = ("entailment", "neutral", "contradiction")
FIRST = ("sentence1", "premise", "Premise")
SECOND = ("sentence2", "hypothesis", "Hypothesis")

_COLA_COLUMNS = ("source", "label", "star", "sentence")
_MNLI_FILES = {
    "train": ("train.tsv",),
    "dev": ("dev_matched.tsv", "dev.tsv"),
    "dev_matched": ("dev_matched.tsv",),
    "dev_mismatched": ("dev_mismatched.tsv",),
    "test": ("test_matched.tsv",),
    "test_matched": ("test_matched.tsv",),
    "test_mismatched": ("test_mismatched.tsv",),
}

COLA = TextBenchmark(
    "CoLA",
    (("sentence",),),
    metric="matthews",
    labels=("unacceptable", "acceptable"),
    headers={"train": _COLA_COLUMNS, "dev": _COLA_COLUMNS},
    submission="CoLA.tsv",
    by_number=True,
    hub=("glue", "cola"),
)
SST2 = TextBenchmark(
    "SST-2",
    (("sentence",),),
    labels=("negative", "positive"),
    submission="SST-2.tsv",
    by_number=True,
    hub=("glue", "sst2"),
)
MRPC = TextBenchmark(
    "MRPC",
    (("#1 String", "sentence1"), ("#2 String", "sentence2")),
    metric="accuracy_and_f1",
    labels=("not_equivalent", "equivalent"),
    label=("Quality", "label"),
    files={
        "train": ("train.tsv", "msr_paraphrase_train.txt"),
        "dev": ("dev.tsv",),
        "test": ("test.tsv",),
    },
    submission="MRPC.tsv",
    by_number=True,
    hub=("glue", "mrpc"),
)
STSB = TextBenchmark(
    "STS-B",
    (("sentence1",), ("sentence2",)),
    metric="pearson_and_spearman",
    label=("score", "label"),
    submission="STS-B.tsv",
    hub=("glue", "stsb"),
)
QQP = TextBenchmark(
    "QQP",
    (("question1", "sentence1"), ("question2", "sentence2")),
    metric="accuracy_and_f1",
    labels=("not_duplicate", "duplicate"),
    label=("is_duplicate", "label"),
    submission="QQP.tsv",
    by_number=True,
    hub=("glue", "qqp"),
)
MNLI = TextBenchmark(
    "MNLI",
    (FIRST, SECOND),
    labels=ENTAILMENT,
    label=("gold_label", "label"),
    files=_MNLI_FILES,
    submission="MNLI-m.tsv",
    hub=("glue", "mnli"),
    hub_splits={"dev": "validation_matched", "test": "test_matched"},
)
MNLI_MISMATCHED = TextBenchmark(
    "MNLI-mm",
    (FIRST, SECOND),
    labels=ENTAILMENT,
    label=("gold_label", "label"),
    files={"dev": ("dev_mismatched.tsv",), "test": ("test_mismatched.tsv",)},
    submission="MNLI-mm.tsv",
    hub=("glue", "mnli_mismatched"),
)
QNLI = TextBenchmark(
    "QNLI",
    (("question", "sentence1"), ("sentence", "sentence2")),
    labels=("entailment", "not_entailment"),
    submission="QNLI.tsv",
    hub=("glue", "qnli"),
)
RTE = TextBenchmark(
    "RTE",
    (FIRST, SECOND),
    labels=("entailment", "not_entailment"),
    submission="RTE.tsv",
    hub=("glue", "rte"),
)
WNLI = TextBenchmark(
    "WNLI",
    (FIRST, SECOND),
    labels=("not_entailment", "entailment"),
    submission="WNLI.tsv",
    by_number=True,
    hub=("glue", "wnli"),
)
AX = TextBenchmark(
    "AX",
    (FIRST, SECOND),
    metric="matthews",
    labels=ENTAILMENT,
    label=("Label", "label"),
    files={"test": ("diagnostic.tsv", "AX.tsv"), "dev": ("diagnostic-full.tsv",)},
    submission="AX.tsv",
    hub=("glue", "ax"),
)

BENCHMARKS = {
    "cola": COLA,
    "sst2": SST2,
    "mrpc": MRPC,
    "stsb": STSB,
    "qqp": QQP,
    "mnli": MNLI,
    "mnli_mismatched": MNLI_MISMATCHED,
    "qnli": QNLI,
    "rte": RTE,
    "wnli": WNLI,
    "ax": AX,
}
