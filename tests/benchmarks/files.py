"""Files for the tests of benchmarks: small ones, and real ones where they are."""

import os
from pathlib import Path

import pytest


def write(path, *lines):
    """Write lines; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def real(*parts):
    """A file below the folder that KERAS_BERT3_DATA names; the test is skipped without it."""
    path = Path(os.environ.get("KERAS_BERT3_DATA", "/nowhere"), *parts)
    if not path.exists():
        pytest.skip(f"no real data: KERAS_BERT3_DATA has no {'/'.join(parts)}")
    return path
