"""SWAG, RACE, Story Cloze, COPA, DREAM and ARC: which text goes with another.

| benchmark   | context            | choices                            | paper                    |
|-------------|--------------------|------------------------------------|--------------------------|
| SWAG        | the first sentence | the second's beginning, an end     | Zellers et al. 2018      |
| RACE        | the passage        | the question and an answer         | Lai et al. 2017          |
| Story Cloze | four sentences     | a fifth                            | Mostafazadeh et al. 2016 |
| COPA        | the premise        | "What was the CAUSE of this?" or   | Roemmele et al. 2011     |
|             |                    | "What happened as a RESULT?", an   |                          |
|             |                    | alternative                        |                          |
| DREAM       | the dialogue, a    | the question and an answer         | Sun et al. 2019          |
|             | line a turn        |                                    |                          |
| ARC         | (none)             | the question and an answer         | Clark et al. 2018        |

Columns of the examples are contexts and lists of choices, as `MultipleChoice` takes them.
"""

import dataclasses
import json
import os
import xml.etree.ElementTree
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert3.benchmarks.examples import Examples, report_skipped
from keras_bert3.benchmarks.tables import find_file, read_commas, read_json_lines
from keras_bert3.benchmarks.text_benchmark import write_whole
from keras_bert3.metrics.glue import accuracy

LETTERS = "ABCDE"
COPA_QUESTIONS = {
    "cause": "What was the CAUSE of this?",
    "effect": "What happened as a RESULT?",
}


_BROKEN = (KeyError, IndexError, TypeError, AttributeError)


class Item(NamedTuple):
    """One question; `answer` counts choices from 0 and is None where it is secret."""

    context: str
    question: str
    choices: list[str]
    answer: int | None
    item_id: str


def _swag_item(row: Mapping[str, Any]) -> Item:
    choices = [row[f"ending{i}"] for i in range(4)]
    answer = None if row.get("label", "") in ("", "-1", -1) else int(row["label"])
    return Item(row["sent1"], row["sent2"], choices, answer, str(row.get("", row.get("fold-ind"))))


def _swag(path: Path) -> Iterator[Item]:
    return map(_swag_item, _named_rows(path))


def _race(path: Path) -> Iterator[Item]:
    """A folder with a JSON file a passage, at any depth: `middle` and `high`, or one of them."""
    for file in sorted(path.rglob("*.txt")):
        passage = json.loads(file.read_text(encoding="utf-8"))
        rows = zip(passage["questions"], passage["options"], passage["answers"], strict=True)
        for number, (question, options, letter) in enumerate(rows):
            item_id = f"{file.parent.name}/{file.stem}/{number}"
            yield Item(passage["article"], question, options, LETTERS.index(letter), item_id)


def _race_item(row: Mapping[str, Any]) -> Item:
    answer = LETTERS.index(row["answer"])
    return Item(row["article"], row["question"], list(row["options"]), answer, row["example_id"])


def _story_cloze(path: Path) -> Iterator[Item]:
    for row in _named_rows(path):
        story = " ".join(row[f"InputSentence{i}"] for i in range(1, 5))
        endings = [row[f"RandomFifthSentenceQuiz{i}"] for i in (1, 2)]
        right = row.get("AnswerRightEnding")
        yield Item(story, "", endings, int(right) - 1 if right else None, row["InputStoryid"])


def _copa_item(row: Mapping[str, Any]) -> Item:
    question, choices = COPA_QUESTIONS[row["question"]], [row["choice1"], row["choice2"]]
    return Item(row["premise"], question, choices, row.get("label"), str(row.get("idx", "")))


def _copa(path: Path) -> Iterator[Item]:
    """SuperGLUE's lines of JSON, or the original XML."""
    if path.suffix == ".jsonl":
        yield from (_copa_item(row) for _, row in read_json_lines(path))
        return
    for item in xml.etree.ElementTree.parse(path).getroot().iter("item"):
        texts = {part.tag: part.text or "" for part in item}
        question = COPA_QUESTIONS[item.attrib["asks-for"]]
        answer = int(item.attrib["most-plausible-alternative"]) - 1
        yield Item(texts["p"], question, [texts["a1"], texts["a2"]], answer, item.attrib["id"])


def _dream(path: Path) -> Iterator[Item]:
    for turns, questions, dialogue in json.loads(path.read_text(encoding="utf-8")):
        for number, row in enumerate(questions):
            yield _dream_item({**row, "dialogue": turns, "dialogue_id": f"{dialogue}/{number}"})


def _dream_item(row: Mapping[str, Any]) -> Item:
    answer = row["choice"].index(row["answer"]) if row.get("answer") else None
    context = "\n".join(row["dialogue"])
    return Item(context, row["question"], list(row["choice"]), answer, str(row["dialogue_id"]))


def _arc(path: Path) -> Iterator[Item]:
    """Lines of JSON, with three to five choices; or CSV without header: question, choices, letter.

    Some questions number their choices 1 to 4.
    """
    if path.suffix == ".csv":
        for number, (question, *choices, key) in read_commas(path):
            answer = int(key) - 1 if key.isdigit() else LETTERS.index(key)
            yield Item("", question, choices, answer, str(number - 1))
        return
    for _, row in read_json_lines(path):
        choices = row["question"]["choices"]
        lists = {name: [choice[name] for choice in choices] for name in ("label", "text")}
        yield _arc_item({**row, "question": row["question"]["stem"], "choices": lists})


def _arc_item(row: Mapping[str, Any]) -> Item:
    keys, texts = list(row["choices"]["label"]), list(row["choices"]["text"])
    answer = keys.index(row["answerKey"]) if row.get("answerKey") else None
    return Item("", row["question"], texts, answer, str(row["id"]))


def _named_rows(path: Path) -> Iterator[dict[str, str]]:
    rows = read_commas(path)
    _, header = next(rows)
    yield from (dict(zip(header, row, strict=False)) for _, row in rows)


@dataclasses.dataclass(frozen=True)
class ChoiceBenchmark:
    """A benchmark of multiple choice.

    Args:
        name: in papers.
        items: reads a file, or RACE's folder.
        files: for each split the names that its file has.
        item: reads a record of the package `datasets`.
        submission: name of the file that is sent in.
        hub: arguments of `datasets.load_dataset`.
    """

    name: str
    items: Callable[[Path], Iterator[Item]]
    files: Mapping[str, tuple[str, ...]]
    item: Callable[[Mapping[str, Any]], Item] | None = None
    submission: str = "predictions.txt"
    hub: tuple[str, ...] = ()

    def read(self, path: str | os.PathLike, split: str) -> Examples:
        """Read a split: contexts, lists of choices, and which is right.

        Args:
            path: the folder of the benchmark, or the file.
            split: see `files`.

        Raises:
            ValueError: for another split, or a missing or broken file.
        """
        return examples_of(self.read_items(path, split), path)

    def read_items(self, path: str | os.PathLike, split: str) -> list[Item]:
        """Read a split with questions and choices apart; see `read`."""
        if split not in self.files:
            raise ValueError(f"Expected a split among {sorted(self.files)}. Received: {split!r}")
        found = self._find(Path(path), split)
        try:
            return list(self.items(found))
        except (*_BROKEN, json.JSONDecodeError, xml.etree.ElementTree.ParseError) as error:
            raise ValueError(
                f"Expected '{found}' in the format of {self.name}. Received: {error!r}"
            ) from error

    def from_hub(self, records: Iterable[Mapping[str, Any]]) -> Examples:
        """Make examples of records of the package `datasets`."""
        assert self.item is not None
        return examples_of(map(self.item, records))

    def _find(self, path: Path, split: str) -> Path:
        for name in self.files[split]:
            if (path / name).is_dir():
                return path / name
        return find_file(path, self.files[split], split)

    def score(self, examples: Examples, predicted: Sequence[int]) -> dict[str, float]:
        """Score the numbers of the chosen texts, counted from 0."""
        return accuracy(examples.known_labels(), list(predicted))

    def write_submission(self, folder: str | os.PathLike, predicted: Sequence[int]) -> Path:
        """Write a chosen number, counted from 0, a line, in the order of the test file."""
        text = "".join(f"{int(number)}\n" for number in predicted)
        return write_whole(Path(folder) / self.submission, text)


def examples_of(items: Iterable[Item], source: Any = "records") -> Examples:
    """Put question and choice together; ARC's fewer than most choices are filled up with "".

    Items that lost their choices are skipped; their numbers, from 1, are kept.
    """
    numbered = list(enumerate(items, start=1))
    rows = [item for _, item in numbered if any(item.choices)]
    skipped = [(number, "no choices") for number, item in numbered if not any(item.choices)]
    most = max((len(row.choices) for row in rows), default=0)
    choices = [
        [f"{row.question} {choice}" if row.question else choice for choice in row.choices]
        + [""] * (most - len(row.choices))
        for row in rows
    ]
    labels = [row.answer for row in rows]
    is_known = all(label is not None and label >= 0 for label in labels) and bool(labels)
    contexts = [row.context for row in rows]
    return Examples(
        (contexts, choices),
        labels if is_known else None,
        [row.item_id for row in rows],
        report_skipped(skipped, source),
    )


def _splits(train: str, dev: str, test: str, *more: tuple[str, str, str]) -> dict:
    names = zip((train, dev, test), *more, strict=True)
    return dict(zip(("train", "dev", "test"), names, strict=True))


SWAG = ChoiceBenchmark(
    "SWAG", _swag, _splits("train.csv", "val.csv", "test.csv"), _swag_item, hub=("swag",)
)
RACE = ChoiceBenchmark(
    "RACE", _race, _splits("train", "dev", "test"), _race_item, hub=("race", "all")
)
STORY_CLOZE = ChoiceBenchmark(
    "Story Cloze",
    _story_cloze,
    _splits(
        *("cloze_test_val__spring2016.csv", "cloze_test_val__winter2018.csv"),
        "cloze_test_test__spring2016.csv",
        ("train.csv", "val.csv", "test.csv"),
    ),
)
COPA = ChoiceBenchmark(
    "COPA",
    _copa,
    _splits(
        *("train.jsonl", "val.jsonl", "test.jsonl"),
        ("copa-dev.xml", "copa-dev.xml", "copa-test.xml"),
    ),
    _copa_item,
    hub=("super_glue", "copa"),
)
DREAM = ChoiceBenchmark(
    "DREAM", _dream, _splits("train.json", "dev.json", "test.json"), _dream_item, hub=("dream",)
)
ARC_EASY, ARC_CHALLENGE = (
    ChoiceBenchmark(
        f"ARC-{level}",
        _arc,
        _splits(f"ARC-{level}-Train.jsonl", f"ARC-{level}-Dev.jsonl", f"ARC-{level}-Test.jsonl"),
        _arc_item,
        hub=("ai2_arc", f"ARC-{level}"),
    )
    for level in ("Easy", "Challenge")
)

BENCHMARKS = {
    "swag": SWAG,
    "race": RACE,
    "story_cloze": STORY_CLOZE,
    "copa": COPA,
    "dream": DREAM,
    "arc_easy": ARC_EASY,
    "arc_challenge": ARC_CHALLENGE,
}
