"""What the papers set for each benchmark when they fine-tune, by family of models."""

from typing import NamedTuple


class Settings(NamedTuple):
    """How a benchmark is trained on.

    Args:
        learning_rates: peaks to try; the best is chosen on the development set.
        batch_size: rows of a step.
        epochs: walks over the training set.
        sequence_length: tokens of a row at most.
    """

    learning_rates: tuple[float, ...]
    batch_size: int
    epochs: int
    sequence_length: int


_BERT_GRID, _BERT_RANGE = (5e-5, 4e-5, 3e-5, 2e-5), (5e-5, 3e-5, 2e-5)
_DEBERTA_GRID, _DEBERTA_LARGE_GRID = (1.5e-5, 2e-5, 3e-5, 4e-5), (5e-6, 8e-6, 9e-6, 1e-5)
_LARGE = 1024

OTHERS = "all others"
PAPERS: dict[str, dict[str, Settings]] = {
    "bert": {
        "squad1": Settings((5e-5,), 32, 3, 384),
        "squad2": Settings((5e-5,), 48, 2, 384),
        "swag": Settings((2e-5,), 16, 3, 128),
        "conll2003": Settings(_BERT_RANGE, 32, 3, 128),
        "wnut17": Settings(_BERT_RANGE, 32, 3, 128),
        "wikiann": Settings(_BERT_RANGE, 32, 3, 128),
        "race": Settings(_BERT_RANGE, 32, 3, 512),
        "dream": Settings(_BERT_RANGE, 32, 3, 512),
        "boolq": Settings(_BERT_RANGE, 32, 3, 256),
        OTHERS: Settings(_BERT_GRID, 32, 3, 128),
    },
    "gpt": {OTHERS: Settings((6.25e-5,), 32, 3, 512)},
    "deberta": {
        "cola": Settings(_DEBERTA_GRID, 32, 6, 64),
        "mrpc": Settings(_DEBERTA_GRID, 32, 6, 128),
        "sst2": Settings(_DEBERTA_GRID, 32, 6, 128),
        "stsb": Settings(_DEBERTA_GRID, 32, 6, 128),
        "qqp": Settings(_DEBERTA_GRID, 64, 8, 320),
        "qnli": Settings(_DEBERTA_GRID, 32, 4, 512),
        "rte": Settings(_DEBERTA_GRID, 32, 6, 320),
        "mnli": Settings(_DEBERTA_GRID, 64, 3, 256),
        "squad1": Settings(_DEBERTA_GRID, 32, 10, 384),
        "squad2": Settings(_DEBERTA_GRID, 32, 10, 384),
        "conll2003": Settings(_DEBERTA_GRID, 16, 15, 512),
        "wnut17": Settings(_DEBERTA_GRID, 16, 15, 512),
        "wikiann": Settings(_DEBERTA_GRID, 16, 15, 512),
        "race": Settings(_DEBERTA_GRID, 32, 10, 512),
        "dream": Settings(_DEBERTA_GRID, 32, 10, 512),
        OTHERS: Settings(_DEBERTA_GRID, 32, 10, 256),
    },
}
"""By family and benchmark.

| family  | what                                | source                                         |
|---------|-------------------------------------|------------------------------------------------|
| bert    | GLUE: grid, 32 rows, 3 epochs       | Devlin et al. 2018, section 4.1                |
|         | SQuAD 1.1; 2.0; SWAG                | sections 4.2; 4.3; 4.4                         |
|         | all others: range                   | appendix A.3                                   |
|         | lengths 128 and 384                 | google-research/bert, README and `run_squad.py`|
| gpt     | all                                 | Radford et al. 2018, section 4.1, and openai/  |
|         |                                     | finetune-transformer-lm `train.py`: n_iter 3,  |
|         |                                     | n_batch 8 on each of n_gpu 4, n_ctx 512        |
| deberta | grids, 10 epochs at most            | He et al. 2021, appendix A; microsoft/FLAML    |
|         |                                     | `get_deberta_space` lists the same             |
|         | GLUE: rows, epochs, lengths of base | microsoft/DeBERTa `experiments/glue/*.sh`      |
|         | named entities: rows, epochs, length| the same, `experiments/ner/ner.sh`             |

Where neither says a thing, the value is that of a benchmark with texts of the same kind.
"""


def paper_settings(family: str, benchmark: str, hidden_dim: int) -> Settings:
    """Look up what a paper sets.

    Args:
        family: a key of `PAPERS`.
        benchmark: short name, such as `mrpc`.
        hidden_dim: width of the model; DeBERTa's from 1,024 on learn at lower rates.

    Example: `paper_settings("bert", "squad2", 768).batch_size` is 48.
    """
    found = PAPERS[family].get(benchmark, PAPERS[family][OTHERS])
    if family == "deberta" and hidden_dim >= _LARGE:
        return found._replace(learning_rates=_DEBERTA_LARGE_GRID)
    return found
