r"""Put a new bidirectional LSTM on top of a checkpoint, for `recipes/finetune.py` to train.

    python recipes/add_bilstm.py --preset runs/ltr/preset --output runs/ltr-bilstm
        "+ BiLSTM" of Devlin et al. 2018, table 5: all of it is trained.

    python recipes/add_bilstm.py --preset bert-base-cased/ --output runs/features \
        --layers -4 -3 -2 -1 --num-lstm-layers 2
        The feature-based approach of section 5.3: the checkpoint is never trained.

`recipes/runs/ablations_bert.sh` and `recipes/runs/feature_ner.sh` do the whole experiments.
"""

import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings."""

    preset: str
    """A checkpoint of any known layout."""
    output: str
    """Folder of the new preset, new or empty."""
    num_lstm_layers: int = 1
    """Layers one upon the other (paper: 1 in table 5, 2 in table 7)."""
    lstm_dim: int | None = None
    """Units of each direction. None: half the width of the checkpoint."""
    layers: tuple[int, ...] | None = None
    """Layers that features are read from, 0 the embeddings, -1 the last. None: all is trained, and
    the last is read."""
    combine: str = "concatenate"
    """concatenate or weighted_sum, of several layers."""
    seed: int = 12345
    """Of the new weights."""


def main(arguments: list[str] | None = None) -> None:
    """Run the recipe."""
    import tyro

    config = tyro.cli(
        Config, args=sys.argv[1:] if arguments is None else arguments, description=__doc__
    )
    import keras

    from keras_bert3.backbones.backbone import Backbone
    from keras_bert3.backbones.bilstm import BiLSTMBackbone
    from keras_bert3.checkpoints.preset import read_tokenizer

    keras.utils.set_random_seed(config.seed)
    backbone = BiLSTMBackbone(
        Backbone.from_preset(config.preset),
        config.num_lstm_layers,
        config.lstm_dim,
        config.layers,
        config.combine,
    )
    backbone.save_to_preset(config.output, tokenizer=read_tokenizer(config.preset))
    print(f"Saved {config.output}")


if __name__ == "__main__":
    main()
