"""Versions of a model: folders whose names are whole numbers."""

from pathlib import Path


def versions(directory: Path) -> list[int]:
    """List the numbers of the versions in a directory, in rising order; other names are skipped."""
    if not directory.is_dir():
        return []
    return sorted(int(f.name) for f in directory.iterdir() if f.name.isdecimal() and f.is_dir())
