"""Print the tables of BERT's ablations with a column of ours.

    python recipes/ablation_tables.py runs/ablations

The folder is what `recipes/runs/ablations_bert.sh` or `recipes/runs/feature_ner.sh` leaves, or has
left so far. Tables without a run in it are left out.
"""

import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> str:
    """Write `tables.md` into the folder; return what is in it."""
    (folder,) = sys.argv[1:] if arguments is None else arguments
    from keras_bert3.runs.ablation_tables import TABLES, markdown

    text = "\n".join(filter(None, (markdown(folder, table) for table in TABLES)))
    (Path(folder) / "tables.md").write_text(text, encoding="utf-8")
    print(text)
    return text


if __name__ == "__main__":
    main()
