r"""Fine-tune a pretrained GPT-1 whole and in part (Radford et al. 2018, section 5).

    python recipes/pretrain.py --backbone gpt --data 'corpora/*.txt' --output runs/gpt
    python recipes/transfer_analysis.py --preset runs/gpt/preset --data glue/SST-2
        A table: all of the model, no auxiliary language model, no pretraining, an LSTM (table 5).

    ... --benchmark race --data RACE --variants layers no_pretraining
        Besides, a picture: the score over the number of blocks that are transferred (figure 2,
        left).

A run leaves `metrics.csv` with a row for each variant and seed, `results.md`, `results.json` and
`results.png`. A command that was stopped goes on, when given again, with what is missing.
"""

import dataclasses
import sys
import time


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings."""

    preset: str
    """A language model, as `recipes/pretrain.py --backbone gpt` leaves it."""
    data: str
    """Folder with the benchmark's official files."""
    benchmark: str = "sst2"
    """Short name, of a benchmark of texts, pairs or multiple choice: see recipes/finetune.py."""
    variants: tuple[str, ...] = ("full", "no_auxiliary", "no_pretraining", "lstm")
    """What to compare. layers=k: the table and k blocks are transferred; layers: each k in turn."""
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
    output: str | None = None
    """Directory of the run, new or empty. None: runs/transfer-<time>."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Run the recipe; return the mean score of each variant."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    from keras_bert3 import CausalLM
    from keras_bert3.runs import transfer
    from keras_bert3.runs.run_directory import new_run
    from keras_bert3.runs.score_pictures import draw_curves

    data = transfer.read(config)
    pretrained = CausalLM.from_preset(config.preset)
    num_layers = pretrained.backbone.num_layers
    lstm = CausalLM.from_preset(config.lstm_preset) if config.lstm_preset else None
    transfer.check(config, pretrained, lstm)
    with new_run(config.output or time.strftime("runs/transfer-%Y%m%d-%H%M%S"), config) as run:
        rows = transfer.compare(run, config, data, pretrained, lstm)
        guess = transfer.guessing(data[0], data[2])
        transfer.save(run, rows, guess)
        means = transfer.means_of(rows)
        levels = {name: means[name][0] for name in ("no_pretraining", "lstm") if name in means}
        levels |= {} if guess is None else {"the most frequent label": guess}
        curve = transfer.layer_curve(means, num_layers)
        if len(curve) > 1:
            names = "blocks transferred", rows[0]["metric"]
            draw_curves(run / "results.png", {"pretrained": curve}, levels, names)
    return {name: mean for name, (mean, _) in means.items()}


if __name__ == "__main__":
    main()
