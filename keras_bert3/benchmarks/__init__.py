"""The data sets of the three papers: official files in, scores and submissions out.

| module            | benchmarks                                                                |
|-------------------|---------------------------------------------------------------------------|
| `glue`            | the nine tasks of GLUE, WNLI among them, and its diagnostics AX           |
| `inference`       | SNLI, SciTail                                                             |
| `superglue`       | BoolQ, CB, RTE, WiC, WSC, and COPA in its files                           |
| `multiple_choice` | SWAG, RACE, Story Cloze, COPA, DREAM, ARC                                 |
| `squad`           | SQuAD 1.1 and 2.0                                                         |
| `named_entities`  | CoNLL-2003 and all files in its format                                    |

Each module is a table: columns, labels, metric, submission. `hub.fetch` gets the same examples by
name where the package `datasets` is installed.
"""
