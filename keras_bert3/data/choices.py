"""Files of texts to choose between: COPA, DREAM, Winograd schemas and DPR, tables of GLUE."""

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple


class Choice(NamedTuple):
    """A context, a question about it, and answers, one of them right.

    Attributes:
        context: a premise, a dialogue, a document.
        question: text; COPA's are "cause" and "effect".
        choices: the answers.
        answer: which is right, counted from 0.
    """

    context: str
    question: str
    choices: list[str]
    answer: int


class Referents(NamedTuple):
    """A sentence with a pronoun, and what it may stand for.

    Attributes:
        before: the sentence up to the pronoun.
        after: the sentence from there on.
        candidates: what may stand in the pronoun's place.
        answer: which does, counted from 0.
    """

    before: str
    after: str
    candidates: list[str]
    answer: int


def read_copa(path: str | Path) -> list[Choice]:
    """Read the XML of COPA (Roemmele et al. 2011).

    Raises:
        ValueError: if it is no such file.
    """
    try:
        items = list(ElementTree.parse(path).getroot().iter("item"))
    except ElementTree.ParseError as error:
        raise ValueError(f"Expected COPA's XML in '{path}'. Received: {error}") from error
    return [
        Choice(
            item.findtext("p", "").strip(),
            item.attrib["asks-for"],
            [item.findtext(name, "").strip() for name in ("a1", "a2")],
            int(item.attrib["most-plausible-alternative"]) - 1,
        )
        for item in items
    ]


def read_dream(path: str | Path) -> list[Choice]:
    """Read the JSON of DREAM (Sun et al. 2019): a question an example, turns one a line."""
    dialogues = json.loads(Path(path).read_text(encoding="utf-8"))
    return [
        Choice("\n".join(turns), row["question"], row["choice"], row["choice"].index(row["answer"]))
        for turns, questions, _ in dialogues
        for row in questions
    ]


def read_referents(path: str | Path) -> list[Referents]:
    """Read Winograd schemas or DPR (Rahman and Ng 2012) of five lines each.

    These are sentence, pronoun, candidates parted by a comma, the right one, an empty line. The
    pronoun is the first such word of the sentence, or "[MASK]".

    Raises:
        ValueError: for lines that are something else, naming the sentence.
    """
    text = Path(path).read_text(encoding="utf-8").strip("\n")
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", text)]
    return [_referents([line.strip() for line in block], path) for block in blocks]


def _referents(block: list[str], path: str | Path) -> Referents:
    if len(block) == 4:
        sentence, pronoun, named, right = block
        candidates = [name.strip() for name in named.split(",")]
        found = re.search(rf"(?<!\w){re.escape(pronoun)}(?!\w)", sentence)
        folded = [name.lower() for name in candidates]
        if found and right.lower() in folded:
            return Referents(
                sentence[: found.start()].rstrip(),
                sentence[found.end() :].strip(),
                candidates,
                folded.index(right.lower()),
            )
    raise ValueError(
        "Expected a sentence, its pronoun, candidates and the right one of them on four lines in "
        f"'{path}'. Received: {block}"
    )


def read_columns(path: str | Path, columns: tuple[str, ...] | tuple[int, ...]) -> list[list[str]]:
    """Read columns of a tab-separated table: by their names in its first line, or by numbers.

    Quotation marks are text. A table read by numbers has no line of names.

    Raises:
        ValueError: naming columns that the table lacks.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    names: list[Any] = list(range(len(rows[0]))) if isinstance(columns[0], int) else rows.pop(0)
    missing = [str(name) for name in columns if name not in names]
    if missing:
        raise ValueError(
            f"Expected columns {', '.join(missing)} in '{path}'. "
            f"Received: {', '.join(map(str, names))}"
        )
    places = [names.index(name) for name in columns]
    return [[row[place] for place in places] for row in rows]
