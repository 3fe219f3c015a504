"""Winograd schemas and DPR: what a pronoun stands for (Levesque et al. 2012; Rahman and Ng 2012).

Five lines a sentence, as they are published:

    The city councilmen refused the demonstrators a permit because they feared violence.
    they
    The city councilmen,The demonstrators
    The city councilmen

The pronoun is the first such word of the sentence, or "[MASK]"; an empty line follows.
"""

import re
from pathlib import Path
from typing import NamedTuple

from keras_bert3.benchmarks.tables import read_lines


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


def read_referents(path: str | Path) -> list[Referents]:
    """Read such a file.

    Raises:
        ValueError: for no file, or lines that are something else, naming the sentence.
    """
    if not Path(path).is_file():
        raise ValueError(f"Expected a file of sentences with pronouns. Received: '{path}'")
    text = "\n".join(line.strip() for line in read_lines(Path(path))).strip("\n")
    return [_referents(block.split("\n"), path) for block in re.split(r"\n{2,}", text)]


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
