"""The English that is on every machine: the documentation inside the Python standard library.

A small corpus for trying things out with no download: the topics of `help()` (from `pydoc_data`)
and the docstrings of the standard library's modules, read from the source files without importing
them. More than a quarter of a million words; which ones depends on the Python version.
"""

import ast
import importlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from keras_bert3.data.sentences import sentence_splitter

_SKIPPED_FOLDERS = frozenset(
    "__pycache__ ensurepip idlelib lib2to3 pydoc_data site-packages test tests turtledemo".split()
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_DECORATION = re.compile(r"\s*([^\w\s])\1{2,}\s*")
_TABLE_RULE = re.compile(r"\s*[-=]{3,}(\s+[-=]{3,})+\s*")
_LETTERS_SHARE = 0.75
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_documentation() -> Iterator[list[str]]:
    """Stream the documents: first each topic of `help()`, then each module's docstrings.

    Paragraphs of prose are kept and split into sentences; examples (`>>>`), rules (`====`), tables
    and grammar are left out. The order is fixed: topics by name, modules by path.

    Returns:
        An iterator over documents, each a list of sentences.

    Raises:
        FileNotFoundError: this Python has no source files for its standard library.
        ImportError: the sentence splitter is not installed, see `sentence_splitter`.

    Example:
        >>> first = next(python_documentation())
        >>> first[0].startswith("Assert statements are a convenient way")
        True
    """
    folder = Path(sysconfig.get_path("stdlib"))
    sources = _source_files(folder)
    if not sources:
        raise FileNotFoundError(
            f"Expected the standard library's source files in {folder}. Received: a Python "
            "without them."
        )
    return _documents(sources, sentence_splitter("en"))


def _source_files(folder: Path) -> list[Path]:
    sources: list[Path] = []
    for name in sorted(sys.stdlib_module_names - _SKIPPED_FOLDERS):
        if (folder / f"{name}.py").is_file():
            sources.append(folder / f"{name}.py")
        sources += sorted((folder / name).rglob("*.py"))
    return [
        source
        for source in sources
        if not _SKIPPED_FOLDERS.intersection(source.relative_to(folder).parts)
    ]


def _documents(sources: list[Path], split: Callable[[str], list[str]]) -> Iterator[list[str]]:
    topics = importlib.import_module("pydoc_data.topics").topics
    for name in sorted(topics):
        document = _sentences([topics[name]], split)
        if document:
            yield document
    for source in sources:
        document = _sentences(_docstrings(source), split)
        if document:
            yield document


def _docstrings(source: Path) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source.read_bytes())
    return [text for text in _docstrings_below(tree) if text]


def _docstrings_below(node: ast.AST) -> Iterator[str | None]:
    if isinstance(node, _DOCUMENTED):
        yield ast.get_docstring(node)
    # Expressions hold no docstring, and are most of the tree.
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _docstrings_below(child)


def _sentences(texts: list[str], split: Callable[[str], list[str]]) -> list[str]:
    paragraphs = (part for text in texts for part in re.split(r"\n\s*\n", text))
    prose = (_prose(paragraph) for paragraph in paragraphs)
    return [sentence for paragraph in prose if paragraph for sentence in split(paragraph)]


def _prose(paragraph: str) -> str:
    """Join the lines of a paragraph; empty when it is no prose."""
    if ">>>" in paragraph or "::=" in paragraph:
        return ""
    lines = [line for line in paragraph.splitlines() if not _DECORATION.fullmatch(line)]
    if any(_TABLE_RULE.fullmatch(line) for line in lines):
        return ""
    text = " ".join(" ".join(lines).split())
    letters = sum(character.isalpha() for character in text)
    is_prose = letters >= _LETTERS_SHARE * len(text.replace(" ", ""))
    return text if is_prose and len(_WORD.findall(text)) >= 4 else ""
