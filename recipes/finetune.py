"""Fine-tune BERT, GPT-1 or DeBERTa on a benchmark of the papers.

    python recipes/finetune.py mrpc --preset bert-base-uncased/ --data glue/MRPC
        MRPC as in Devlin et al. 2018: four learning rates, three epochs each, the best on dev.

    python recipes/finetune.py rte --preset runs/mnli/preset --data glue/RTE --seeds 5
        From a model that was fine-tuned before; five restarts, median and spread.

    python recipes/finetune.py squad2 --preset deberta/ --data squad --learning-rates 2e-5
        One learning rate; SQuAD 2.0's threshold is chosen on dev too.

What is left out is what the paper of the checkpoint's family sets for the benchmark
(`keras_bert3/runs/fine_tuning_settings.py`). The folder of the data holds the benchmark's official
files. A run leaves the best model as `preset/`, `results.md`, `results.json`, `metrics.csv` with a
row an epoch, `curves.png` and, where there is a test file, `submission/`. A command that was
stopped goes on, when given again, with the runs that are missing.
"""

import dataclasses
import sys
import time
from typing import Any


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a run. A flag overrides the paper."""

    benchmark: str
    """Short name: mrpc, cola, mnli, squad2, swag, conll2003 ...; another word lists them all."""
    preset: str
    """A checkpoint of any known layout, or of an earlier run."""
    data: str | None = None
    """Folder with the official files. None: fetched by name with the package datasets."""
    training: str | None = None
    """File to train on, where it is another than the folder's."""
    validation: str | None = None
    """File to choose on, where it is another than the folder's."""
    test: str | None = None
    """File to answer in the end, where it is another than the folder's."""
    learning_rates: tuple[float, ...] | None = None
    """Peak rates to try. None: the paper's."""
    batch_size: int | None = None
    """Rows of a step. None: the paper's."""
    epochs: int | None = None
    """Walks over the training set; the best on dev is kept. None: the paper's."""
    sequence_length: int | None = None
    """Tokens of a row at most. None: the paper's."""
    seeds: int = 1
    """Restarts with each learning rate."""
    seed: int = 12345
    """The first of them (published script: 12345)."""
    patience: int | None = None
    """Epochs without a better score after which a run stops. None: never."""
    most: int | None = None
    """Rows to train on at most, the first ones. None: all."""
    class_weights: bool = False
    """Let every class count as much as any other."""
    frozen_layers: int | None = None
    """Keep the embeddings and as many first blocks as they are. None: train all."""
    lora_rank: int | None = None
    """Train only changes of this rank to queries and values (Hu et al. 2021). None: all weights."""
    ensemble: int = 0
    """Let so many of the best runs answer together too, by the mean of their probabilities."""
    sift: float = 0.0
    """Weight of SiFT's loss (He et al. 2021, section 5.1; released scripts: 5). 0: no such loss."""
    by_length: bool = False
    """Let texts about as long as one another share a batch: less padding."""
    whole_documents: bool = False
    """Named entities: read documents instead of sentences (Devlin et al. 2018, section 5.3)."""
    quoted: bool = False
    """Tables quote as CSV does; official ones do not."""
    dtype_policy: str = "float32"
    """float32, mixed_bfloat16 or mixed_float16."""
    output: str | None = None
    """Directory of the run, new or empty. None: runs/finetune-<benchmark>-<time>."""


def parse(arguments: list[str]) -> Config:
    """Read the command line; the benchmark is its first word."""
    import tyro

    if arguments and not arguments[0].startswith("-"):
        arguments = ["--benchmark", *arguments]
    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Run the recipe; return what `results.json` holds."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    import keras

    from keras_bert3.runs import fine_tuning, fine_tuning_report
    from keras_bert3.runs.run_directory import new_run

    config = fine_tuning.settle(config)
    splits = fine_tuning.read_splits(config)
    keras.config.set_dtype_policy(config.dtype_policy)
    output = config.output or time.strftime(f"runs/finetune-{config.benchmark}-%Y%m%d-%H%M%S")
    with new_run(output, config) as run:
        rows = fine_tuning.search(run, config, splits)
        return fine_tuning_report.report(run, config, splits, rows)


if __name__ == "__main__":
    main()
