r"""Fine-tune a pretrained GPT-1 on a table of texts, whole and in part (Radford et al. 2018, 5).

    python recipes/pretrain.py --backbone gpt --data 'corpora/*.txt' --output runs/gpt
    python recipes/transfer_analysis.py --preset runs/gpt/preset \
        --training SST-2/train.tsv --validation SST-2/dev.tsv
        A table: all of the model, no auxiliary language model, no pretraining, an LSTM.

    ... --variants layers=0 layers=1 layers=2
        The accuracy over the number of blocks that are transferred (figure 2, left).

The tables are tab-separated, with columns `sentence` and `label`.
"""

import dataclasses
import statistics
import sys


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings."""

    preset: str
    """A language model, as `recipes/pretrain.py --backbone gpt` leaves it."""
    training: str
    """The table to train on."""
    validation: str
    """The table to score."""
    variants: tuple[str, ...] = ("full", "no_auxiliary", "no_pretraining", "lstm")
    """What to compare; layers=k too, k from 0 to the number of blocks."""
    lstm_preset: str | None = None
    """A language model of `--backbone lstm`. None: a new one of the preset's width."""
    most: int | None = None
    """Rows to train on at most, the first ones. None: all."""
    sequence_length: int = 64
    """Tokens of a row (paper: 512)."""
    batch_size: int = 32
    """Rows of a step (paper: 32)."""
    epochs: int = 3
    """Walks over the rows (paper: 3)."""
    learning_rate: float = 6.25e-5
    """Peak rate (paper: 6.25e-5); small models want more."""
    seeds: int = 1
    """Runs of each variant; their mean is shown."""
    table: str | None = None
    """A CSV file that gets a row for every run."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Run the recipe; return the mean accuracy of each variant."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    import keras

    from keras_bert3 import CausalLM
    from keras_bert3.data.choices import read_columns
    from keras_bert3.runs import transfer

    def read(path, most=None):
        texts, labels = zip(*read_columns(path, ("sentence", "label"))[:most], strict=True)
        return list(texts), list(labels)

    training, validation = read(config.training, config.most), read(config.validation)
    pretrained = CausalLM.from_preset(config.preset)
    transfer.check_variants(config.variants, pretrained.backbone.num_layers)
    lstm = CausalLM.from_preset(config.lstm_preset) if config.lstm_preset else None
    labels, means = sorted(set(training[1])), {}
    options = config.learning_rate, config.epochs, config.batch_size
    for variant in config.variants:
        scores = []
        for seed in range(config.seeds):
            keras.utils.set_random_seed(seed)
            task = transfer.make_classifier(
                variant, pretrained, labels, config.sequence_length, lstm
            )
            scores.append(transfer.fine_tune(task, training, validation, *options, seed))
            if config.table is not None:
                row = {"variant": variant, "seed": seed, "accuracy": scores[-1]}
                transfer.append_row(config.table, row)
        means[variant] = statistics.mean(scores)
        print(
            f"| {variant:14s} | {means[variant]:.4f} | {[round(s, 4) for s in scores]} |",
            flush=True,
        )
    print(f"most frequent label {transfer.majority(validation[1]):.4f}, n = {len(validation[1])}")
    return means


if __name__ == "__main__":
    main()
