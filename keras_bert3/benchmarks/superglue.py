"""SuperGLUE (Wang et al. 2019): BoolQ, CB, RTE, WiC and WSC, as files of super.gluebenchmark.com.

Files are `train.jsonl`, `val.jsonl` and `test.jsonl`, and what is sent in is a JSON object a line.
COPA is in `multiple_choice`. WiC's word and WSC's spans are written into the texts:

| benchmark | first text                                          | second text           |
|-----------|-----------------------------------------------------|-----------------------|
| BoolQ     | the question                                        | the passage           |
| CB, RTE   | the premise                                         | the hypothesis        |
| WiC       | the word, a colon and the first sentence            | the second sentence   |
| WSC       | the text with the pronoun between asterisks         | the other expression  |
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.text_benchmark import TextBenchmark, write_whole

FILES = {
    "train": ("train.jsonl", "train.tsv"),
    "dev": ("val.jsonl", "dev.jsonl", "validation.tsv"),
    "test": ("test.jsonl",),
}
NO_YES = ("false", "true")

Record = Mapping[str, Any]


def _as_it_is(record: Record) -> Record:
    return record


def _word_in_context(record: Record) -> Record:
    return {**record, "sentence1": f"{record['word']}: {record['sentence1']}"}


def _pronoun(record: Record) -> Record:
    """Mark the pronoun; `span2_index` counts words between spaces."""
    target = record.get("target", record)
    words = record["text"].split(" ")
    place, length = target["span2_index"], len(target["span2_text"].split(" "))
    words[place] = f"*{words[place]}"
    words[place + length - 1] += "*"
    return {**record, "text": " ".join(words), "span1_text": target["span1_text"]}


@dataclasses.dataclass(frozen=True)
class SuperGlueBenchmark(TextBenchmark):
    """A `TextBenchmark` of SuperGLUE.

    Args:
        rewrite: from a record to one that has `texts`.
    """

    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: FILES)
    rewrite: Callable[[Record], Record] = _as_it_is

    def from_records(
        self, records: Iterable[tuple[int, Record]], source: Any, skipped: Any = None
    ) -> Examples:
        """Make examples of numbered records; truth values become their names."""
        rewritten = (
            (number, {**self.rewrite(record), **_truth(record)}) for number, record in records
        )
        return super().from_records(rewritten, source, skipped)

    def write_submission(self, folder: str | os.PathLike, predicted: Sequence[Any]) -> Path:
        """Write a line `{"idx": 0, "label": "entailment"}` for each prediction, in order."""
        self._numbers(predicted)
        return write_json_lines(Path(folder) / f"{self.name}.jsonl", predicted)


def _truth(record: Record) -> Record:
    label = record.get("label")
    return {"label": str(label).lower()} if isinstance(label, bool) else {}


def write_json_lines(path: Path, labels: Sequence[Any]) -> Path:
    """Write `{"idx": i, "label": label}` a line; "true" and "false" as the server spells them."""
    rows = [json.dumps({"idx": i, "label": label}) for i, label in enumerate(labels)]
    return write_whole(path, "".join(f"{row}\n" for row in rows))


BOOLQ = SuperGlueBenchmark(
    "BoolQ", (("question",), ("passage",)), labels=NO_YES, hub=("super_glue", "boolq")
)
CB = SuperGlueBenchmark(
    "CB",
    (("premise",), ("hypothesis",)),
    labels=("entailment", "contradiction", "neutral"),
    hub=("super_glue", "cb"),
)
RTE = SuperGlueBenchmark(
    "RTE",
    (("premise",), ("hypothesis",)),
    labels=("entailment", "not_entailment"),
    hub=("super_glue", "rte"),
)
WIC = SuperGlueBenchmark(
    "WiC",
    (("sentence1",), ("sentence2",)),
    labels=NO_YES,
    rewrite=_word_in_context,
    hub=("super_glue", "wic"),
)
WSC = SuperGlueBenchmark(
    "WSC",
    (("text",), ("span1_text",)),
    labels=NO_YES,
    rewrite=_pronoun,
    hub=("super_glue", "wsc"),
)

BENCHMARKS = {"boolq": BOOLQ, "cb": CB, "superglue_rte": RTE, "wic": WIC, "wsc": WSC}
