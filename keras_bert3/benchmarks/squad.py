"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018), and files in their format."""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert3.benchmarks.examples import Examples
from keras_bert3.benchmarks.tables import find_file
from keras_bert3.benchmarks.text_benchmark import write_whole
from keras_bert3.metrics.squad import squad1_scores, squad2_scores


@dataclasses.dataclass(frozen=True)
class SquadBenchmark:
    """Questions on paragraphs of Wikipedia.

    Args:
        name: in papers.
        files: for each split the names that its file has.
        has_null: whether some questions have no answer.
        hub: arguments of `datasets.load_dataset`.
    """

    name: str
    files: Mapping[str, tuple[str, ...]]
    has_null: bool
    hub: tuple[str, ...] = ()

    def read(
        self, path: str | os.PathLike, split: str, titles: Sequence[str] | None = None
    ) -> Examples:
        """Read a split.

        Args:
            path: the folder of the benchmark, or the file.
            split: see `files`.
            titles: of the articles to read; all when None.

        Returns:
            Questions and texts, and for labels dicts of lists `text` and `answer_start`, as
            `ExtractiveQA` takes them; empty lists for no answer. A file in which no question has an
            answer and none is said to be impossible has no labels.

        Raises:
            ValueError: for another split, or a missing or broken file.
        """
        if split not in self.files:
            raise ValueError(f"Expected a split among {sorted(self.files)}. Received: {split!r}")
        file = find_file(Path(path), self.files[split], split)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            rows = [
                (question["question"], paragraph["context"], _answers(question), question)
                for article in content["data"]
                if titles is None or article.get("title") in titles
                for paragraph in article["paragraphs"]
                for question in paragraph["qas"]
            ]
            ids = [str(question["id"]) for _, _, _, question in rows]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"Expected '{file}' in the format of SQuAD. Received: {error!r}"
            ) from error
        is_labelled = any(row[2]["text"] or row[3].get("is_impossible") for row in rows)
        return Examples(
            ([row[0] for row in rows], [row[1] for row in rows]),
            [row[2] for row in rows] if is_labelled else None,
            ids,
        )

    def from_hub(self, records: Iterable[Mapping[str, Any]]) -> Examples:
        """Make examples of records of the package `datasets`."""
        rows = [(r["question"], r["context"], dict(r["answers"]), str(r["id"])) for r in records]
        questions, contexts, answers, ids = (list(column) for column in zip(*rows, strict=True))
        return Examples((questions, contexts), answers, ids)

    def score(
        self,
        examples: Examples,
        predicted: Sequence[str],
        null_margins: Sequence[float] | None = None,
        null_threshold: float = 0.0,
    ) -> dict[str, float]:
        """Score answers as the official scripts do; see `metrics.squad`.

        Args:
            examples: with labels.
            predicted: the text of an answer to each.
            null_margins: `Answer.null_margin` of each, where `predicted` has the best answers of
                a model without `null_threshold` (SQuAD 2.0).
            null_threshold: see `squad2_scores`.
        """
        gold = {
            key: label["text"]
            for key, label in zip(examples.ids, examples.known_labels(), strict=True)
        }
        by_id = dict(zip(examples.ids, predicted, strict=True))
        if not self.has_null:
            return squad1_scores(gold, by_id)
        margins = null_margins
        by_margin = None if margins is None else dict(zip(examples.ids, margins, strict=True))
        return squad2_scores(gold, by_id, by_margin, null_threshold)

    def write_submission(
        self,
        folder: str | os.PathLike,
        examples: Examples,
        predicted: Sequence[str],
        null_margins: Sequence[float] | None = None,
    ) -> Path:
        """Write `predictions.json`, and with margins `null_odds.json`: from ids to values."""
        named = {"predictions.json": predicted, "null_odds.json": null_margins}
        for name, values in named.items():
            if values is not None:
                by_id: dict[str, Any] = dict(zip(examples.ids, values, strict=True))
                text = json.dumps(by_id, indent=2, ensure_ascii=False) + "\n"
                write_whole(Path(folder) / name, text)
        return Path(folder) / "predictions.json"


def _answers(question: Mapping[str, Any]) -> dict[str, list]:
    """The gold answers; SQuAD 2.0's plausible ones to impossible questions are none."""
    answers = [] if question.get("is_impossible") else question.get("answers", [])
    return {
        "text": [answer["text"] for answer in answers],
        "answer_start": [answer["answer_start"] for answer in answers],
    }


SQUAD1 = SquadBenchmark(
    "SQuAD 1.1",
    {"train": ("train-v1.1.json",), "dev": ("dev-v1.1.json",)},
    has_null=False,
    hub=("squad",),
)
SQUAD2 = SquadBenchmark(
    "SQuAD 2.0",
    {"train": ("train-v2.0.json",), "dev": ("dev-v2.0.json",), "test": ("test-v2.0.json",)},
    has_null=True,
    hub=("squad_v2",),
)

BENCHMARKS = {"squad1": SQUAD1, "squad2": SQUAD2}
