"""The two files of a byte-pair tokenizer: tokens with their ids as JSON, merges a line each."""

import json
from collections.abc import Container, Sequence
from pathlib import Path

from keras_bert3.tokenizers.vocabulary import write_text

_VERSION = "#version: 0.2"

Merges = Sequence[tuple[str, str]]


def check_merges(tokens: Container[str], merges: Merges) -> None:
    """Raise ValueError unless each merge joins two tokens of a vocabulary into a third.

    Example: `check_merges({"a", "b", "ab"}, [("a", "b")])` is None.
    """
    for pair in merges:
        for token in (*pair, "".join(pair)):
            if token not in tokens:
                raise ValueError(
                    f"Expected merges of tokens into tokens of the vocabulary. Received: the merge "
                    f"{pair} and no token {token!r}"
                )


def write_merges(file: Path, merges: Merges) -> None:
    """Write pairs, one a line, after a line that names the version; whole or not at all."""
    lines = [_VERSION, *(f"{left} {right}" for left, right in merges), ""]
    write_text(file, "\n".join(lines))


def read_json_vocabulary(file: Path) -> list[str]:
    """Read a JSON object from tokens to ids, which must be 0 to V - 1."""
    try:
        ids = json.loads(file.read_text(encoding="utf-8"))
        tokens = sorted(ids, key=ids.__getitem__)
        numbers = [ids[token] for token in tokens]
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"Expected tokens and their ids in '{file}'. Received: {error}") from error
    if numbers != list(range(len(tokens))):
        raise ValueError(f"Expected ids 0 to {len(tokens) - 1} in '{file}'. Received: others")
    return tokens


def read_merges(file: Path) -> list[tuple[str, str]]:
    """Read pairs, one a line, after a line that names the version."""
    lines = file.read_bytes().decode("utf-8").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    merges = [tuple(line.split(" ")) for line in lines if line]
    broken = next((pair for pair in merges if len(pair) != 2), None)
    if broken is not None:
        raise ValueError(f"Expected two pieces a line in '{file}'. Received: {' '.join(broken)!r}")
    return [(left, right) for left, right in merges]
