"""The tables of BERT's ablations (Devlin et al. 2018, section 5, appendix C) beside our own runs.

The folder of the runs, as `recipes/runs/ablations_bert.sh` and `feature_ner.sh` leave it:

    <run>/pretrain/evaluation.json            what pretraining reached
    <run>/<benchmark>/results.json            what `recipes/finetune.py` reached
"""

import json
import math
from pathlib import Path
from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table.

    Args:
        title: in the paper.
        task: folder below a run's.
        score: name in its results; `perplexity` is of pretraining.
    """

    title: str
    task: str
    score: str


class Table(NamedTuple):
    """A table of the paper.

    Args:
        title: its number and what varies.
        columns: tasks.
        rows: for each, the paper's name, the name of our run, and what the paper reports in each
            column; None for nothing.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, str, tuple[float | None, ...]], ...]


_MNLI, _QNLI, _MRPC, _SST2 = (
    Column(title, task, "accuracy")
    for title, task in (("MNLI", "mnli"), ("QNLI", "qnli"), ("MRPC", "mrpc"), ("SST-2", "sst2"))
)
_SQUAD = Column("SQuAD F1", "squad1", "f1")
_NER, _NER_FEATURES = Column("NER F1", "ner", "f1"), Column("NER features", "ner-features", "f1")
_PERPLEXITY = Column("LM perplexity", "pretrain", "perplexity")

TABLES = (
    Table(
        "Table 5: what is pretrained, and what is on top",
        (_MNLI, _QNLI, _MRPC, _SST2, _SQUAD),
        (
            ("BERT base", "base", (84.4, 88.4, 86.7, 92.7, 88.5)),
            ("No NSP", "no-nsp", (83.9, 84.9, 86.5, 92.6, 87.9)),
            ("LTR & No NSP", "ltr", (82.1, 84.3, 77.5, 92.1, 77.8)),
            ("+ BiLSTM", "ltr-bilstm", (82.1, 84.1, 75.7, 91.6, 84.9)),
        ),
    ),
    Table(
        "Table 6: size, the paper's layers x width and ours",
        (_PERPLEXITY, _MNLI, _MRPC, _SST2),
        (
            ("3x768, ours 1x64", "size-1x64", (5.84, 77.9, 79.8, 88.4)),
            ("6x768, ours 2x64", "size-2x64", (4.68, 81.9, 84.8, 91.3)),
            ("12x768, ours 2x128", "base", (3.99, 84.4, 86.7, 92.9)),
            ("12x1024, ours 4x128", "size-4x128", (3.54, 85.7, 86.9, 93.3)),
            ("24x1024, ours 4x192", "size-4x192", (3.23, 86.6, 87.8, 93.7)),
        ),
    ),
    Table(
        "Table 7: named entities from features, a BiLSTM on top (paper: CoNLL-2003, dev)",
        (_NER,),
        (
            ("Fine-tuning", "fine-tuned", (96.4,)),
            ("Embeddings", "embeddings", (91.0,)),
            ("Second-to-last hidden", "second-to-last", (95.6,)),
            ("Last hidden", "last", (94.9,)),
            ("Weighted sum of last four", "sum-last-four", (95.9,)),
            ("Concatenated last four", "concat-last-four", (96.1,)),
            ("Weighted sum of all layers", "sum-all", (95.5,)),
        ),
    ),
    Table(
        "Table 8: hidden tokens in percent, [MASK] / same / random",
        (_MNLI, _NER, _NER_FEATURES),
        (
            ("80 / 10 / 10", "base", (84.2, 95.4, 94.9)),
            ("100 / 0 / 0", "mix-100-0-0", (84.3, 94.9, 94.0)),
            ("80 / 0 / 20", "mix-80-0-20", (84.1, 95.2, 94.6)),
            ("80 / 20 / 0", "mix-80-20-0", (84.4, 95.2, 94.7)),
            ("0 / 20 / 80", "mix-0-20-80", (83.7, 94.8, 94.6)),
            ("0 / 0 / 100", "mix-0-0-100", (83.6, 94.9, 94.6)),
        ),
    ),
    Table(
        "Appendix C.1: share of the steps (its text: half of them lose almost 1.0)",
        (_MNLI,),
        (
            ("none", "steps-0", (None,)),
            ("a half", "steps-half", (None,)),
            ("all", "base", (84.4,)),
        ),
    ),
)


def score_of(folder: Path, run: str, column: Column) -> float | None:
    """Read what a run of ours reached, in percent but for perplexity; None where it is missing."""
    name = "evaluation.json" if column.task == "pretrain" else "results.json"
    file = folder / run / column.task / name
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    if column.score == "perplexity":
        return math.exp(content["masked_lm_loss"])
    value = content["best"][column.score]
    return value if column.task.startswith("squad") else 100 * value


def markdown(folder: str | Path, table: Table) -> str:
    """Write a table: for each task the paper's number and ours.

    Example: a row reads `| No NSP | 83.9 | 41.2 | 84.9 | - |`; a dash is what is missing.

    Returns:
        The table, or "" where no run of ours has a part in it.
    """
    heads = [name for column in table.columns for name in (column.title, "ours")]
    lines = [table.title, "", f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    is_empty = True
    for title, run, papers in table.rows:
        values = []
        for column, paper in zip(table.columns, papers, strict=True):
            own = score_of(Path(folder), run, column)
            is_empty = is_empty and own is None
            values += [_shown(column, paper), _shown(column, own)]
        lines.append(f"| {title} | {' | '.join(values)} |")
    return "" if is_empty else "\n".join(lines) + "\n"


def _shown(column: Column, value: float | None) -> str:
    digits = 2 if column.score == "perplexity" else 1
    return "-" if value is None else f"{value:.{digits}f}"
