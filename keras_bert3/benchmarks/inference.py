"""SNLI (Bowman et al. 2015) and SciTail (Khot et al. 2018): does one sentence follow from another.

Both are among the tasks of Radford et al. 2018 (table 2).
"""

from keras_bert3.benchmarks.glue import ENTAILMENT, FIRST, SECOND
from keras_bert3.benchmarks.text_benchmark import TextBenchmark

_SCITAIL_COLUMNS = ("premise", "hypothesis", "label")

SNLI = TextBenchmark(
    "SNLI",
    (FIRST, SECOND),
    labels=ENTAILMENT,
    label=("gold_label", "label"),
    files={
        split: (f"{split}.tsv", f"snli_1.0_{split}.txt", f"snli_1.0_{split}.jsonl")
        for split in ("train", "dev", "test")
    },
    hub=("snli",),
)
SCITAIL = TextBenchmark(
    "SciTail",
    (FIRST, SECOND),
    labels=("entailment", "neutral"),
    files={
        split: (f"scitail_1.0_{split}.tsv", f"scitail_1.0_{split}.txt")
        for split in ("train", "dev", "test")
    },
    headers=dict.fromkeys(("train", "dev", "test"), _SCITAIL_COLUMNS),
    other_names={"entails": "entailment"},
    hub=("scitail", "tsv_format"),
)

BENCHMARKS = {"snli": SNLI, "scitail": SCITAIL}
