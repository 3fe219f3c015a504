"""Named entities in the format of CoNLL-2003 (Tjong Kim Sang & De Meulder 2003).

A word a line, its tag last, a blank line after each sentence. Lines `-DOCSTART-` part documents;
they are no words, neither in training nor in scores. CoNLL-2003 was published in IOB1; tags are
read in either scheme and returned in IOB2, which is what `metrics.entities` makes of both.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.tables import find_file, read_lines
from keras_bert3.benchmarks.text_benchmark import write_whole
from keras_bert3.metrics.entities import OUTSIDE, entity_scores, iob2

DOCUMENT = "-DOCSTART-"

Sentence = tuple[list[str], list[str]]


@dataclasses.dataclass(frozen=True)
class EntityBenchmark:
    """A benchmark of tagged words.

    Args:
        name: in papers.
        files: for each split the names that its file has.
        kinds: of entities.
        separator: between the columns of a line; any space where None.
        hub: arguments of `datasets.load_dataset`.
    """

    name: str
    files: Mapping[str, tuple[str, ...]]
    kinds: tuple[str, ...]
    separator: str | None = None
    hub: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes: "O", then B- and I- of each kind."""
        return (OUTSIDE, *(f"{letter}-{kind}" for kind in self.kinds for letter in "BI"))

    def read(self, path: str | os.PathLike, split: str, whole_documents: bool = False) -> Examples:
        """Read a split.

        Args:
            path: the folder of the benchmark, or the file.
            split: see `files`.
            whole_documents: whether rows are documents, "the maximal document context" (Devlin et
                al. 2018, section 5.3), instead of sentences. A file without `-DOCSTART-` is one
                document.

        Returns:
            One column of lists of words, and their tags.

        Raises:
            ValueError: for another split, a missing file, or a tag of another kind.
        """
        if split not in self.files:
            raise ValueError(f"Expected a split among {sorted(self.files)}. Received: {split!r}")
        file = find_file(Path(path), self.files[split], split)
        documents = list(read_documents(file, self.separator))
        sentences = [sentence for document in documents for sentence in document]
        rows = [_joined(document) for document in documents] if whole_documents else sentences
        rows = [row for row in rows if row[0]]
        known = set(self.labels)
        unknown = [tag for _, tags in rows for tag in tags if tag not in known]
        if unknown:
            raise ValueError(
                f"Expected tags among {list(self.labels)} in '{file}'. Received: {unknown[0]!r}"
            )
        ids = [str(number) for number in range(len(rows))]
        return Examples(([row[0] for row in rows],), [row[1] for row in rows], ids)

    def from_hub(self, records: Iterable[Mapping[str, Any]]) -> Examples:
        """Make examples of records of the package `datasets`, whose tags are in this order."""
        rows = [
            (list(row["tokens"]), [self.labels[number] for number in row["ner_tags"]])
            for row in records
        ]
        ids = [str(number) for number in range(len(rows))]
        return Examples(([words for words, _ in rows],), [tags for _, tags in rows], ids)

    def score(self, examples: Examples, predicted: Sequence[Sequence[str]]) -> dict[str, float]:
        """Score tags as conlleval does; see `metrics.entities.entity_scores`."""
        return entity_scores(examples.known_labels(), predicted)

    def write_submission(
        self, folder: str | os.PathLike, examples: Examples, predicted: Sequence[Sequence[str]]
    ) -> Path:
        """Write `predictions.conll`: word, tag and predicted tag a line, as conlleval reads it."""
        gold = examples.labels or [[OUTSIDE] * len(row) for row in examples.columns[0]]
        blocks = [
            "".join(f"{' '.join(line)}\n" for line in zip(words, tags, guesses, strict=True))
            for words, tags, guesses in zip(examples.columns[0], gold, predicted, strict=True)
        ]
        return write_whole(Path(folder) / "predictions.conll", "\n".join(blocks))


def read_documents(path: Path, separator: str | None = None) -> Iterator[list[Sentence]]:
    """Yield documents as lists of sentences, each its words and its tags in IOB2."""
    document: list[Sentence] = []
    for block in _blocks(read_lines(path)):
        rows = [line.split(separator) for line in block]
        if rows[0][0] == DOCUMENT:
            if document:
                yield document
            document, rows = [], rows[1:]
        if rows:
            document.append(([row[0] for row in rows], iob2([row[-1].strip() for row in rows])))
    if document:
        yield document


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Part lines at blank ones, and before every `-DOCSTART-`."""
    block: list[str] = []
    for line in lines:
        is_blank = not line.strip()
        if (is_blank or line.startswith(DOCUMENT)) and block:
            yield block
            block = []
        if not is_blank:
            block.append(line)
    if block:
        yield block


def _joined(document: list[Sentence]) -> Sentence:
    words = [word for sentence, _ in document for word in sentence]
    return words, [tag for _, tags in document for tag in tags]


CONLL2003 = EntityBenchmark(
    "CoNLL-2003",
    {
        "train": ("eng.train", "train.txt", "train.conll"),
        "dev": ("eng.testa", "valid.txt", "dev.conll"),
        "test": ("eng.testb", "test.txt", "test.conll"),
    },
    ("PER", "ORG", "LOC", "MISC"),
    hub=("conll2003",),
)
WNUT17 = EntityBenchmark(
    "WNUT-17",
    {
        "train": ("wnut17train.conll", "train.conll"),
        "dev": ("emerging.dev.conll", "dev.conll"),
        "test": ("emerging.test.annotated", "test.conll"),
    },
    ("corporation", "creative-work", "group", "location", "person", "product"),
    separator="\t",
    hub=("wnut_17",),
)
WIKIANN = EntityBenchmark(
    "WikiANN",
    {"train": ("train",), "dev": ("dev",), "test": ("test",)},
    ("PER", "ORG", "LOC"),
    separator="\t",
    hub=("wikiann", "en"),
)

BENCHMARKS = {"conll2003": CONLL2003, "wnut17": WNUT17, "wikiann": WIKIANN}
