"""Draw what a DeBERTa's attention is made of: a map of delta(i, j), and its terms on a text.

    python recipes/attention_picture.py runs/pretrain-.../preset "The value is returned."
        Writes attention.png: which row of the relative embeddings belongs to each pair, then for
        one head of one layer the scores of content to content, content to position and position to
        content, and the attention they add up to (He et al. 2021, equation 4).

Needs matplotlib, and a preset with its tokenizer.
"""

import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a picture."""

    preset: str
    """A preset of a DeBERTa."""
    text: str
    """What the model reads."""
    layer: int = 0
    """Which block, from 0."""
    head: int = 0
    """Which head, from 0."""
    output: str = "attention.png"
    """The picture's file; its ending chooses the format."""


def maps(config: Config) -> tuple[list[str], dict]:
    """Return the tokens, and by title each map `[q, q]`: rows ask, columns answer."""
    import numpy as np
    from keras import ops

    from keras_bert3 import DebertaBackbone
    from keras_bert3.checkpoints.preset import read_tokenizer
    from keras_bert3.layers.relative_positions import rows_of

    backbone = DebertaBackbone.from_preset(config.preset)
    tokenizer = read_tokenizer(config.preset)
    for name, chosen, count in (
        ("layer", config.layer, backbone.num_layers),
        ("head", config.head, backbone.num_heads),
    ):
        if not 0 <= chosen < count:
            raise ValueError(f"Expected `{name}` in [0, {count}). Received: {chosen}")
    ids = [tokenizer.cls_id, *tokenizer(config.text), tokenizer.sep_id]
    x = {"token_ids": np.array([ids], "int32"), "padding_mask": np.ones((1, len(ids)), "int32")}
    hidden = backbone(x, layer_outputs=True)["layer_outputs"][config.layer]
    layer = backbone.blocks[config.layer].attention
    terms = layer.scores_by_term(hidden, backbone.relative_embeddings.rows())
    chosen = {
        n: ops.convert_to_numpy(s)[0, config.head].astype("float64") for n, s in terms.items()
    }
    summed = np.sum(list(chosen.values()), axis=0)
    attention = np.exp(summed - summed.max(-1, keepdims=True))
    pictures = {
        "delta(i, j)": np.stack([rows_of(layer.delta, i, len(ids), -1) for i in range(len(ids))]),
        **{f"{name} scores": scores for name, scores in chosen.items()},
        "attention": attention / attention.sum(-1, keepdims=True),
    }
    return [tokenizer.id_to_token(i) for i in ids], pictures


def draw(tokens: list[str], pictures: dict, path: str) -> None:
    """Draw the maps side by side into a file."""
    from matplotlib.figure import Figure

    size = max(3.0, 0.25 * len(tokens))
    figure = Figure(figsize=(size * len(pictures), size + 1.5), layout="constrained")
    for axes, (title, values) in zip(
        figure.subplots(1, len(pictures), squeeze=False)[0], pictures.items(), strict=True
    ):
        image = axes.imshow(values, cmap="viridis" if values.min() >= 0 else "RdBu_r")
        axes.set_title(title)
        axes.set_xticks(range(len(tokens)), tokens, rotation=90, parse_math=False)
        axes.set_yticks(range(len(tokens)), tokens, parse_math=False)
        figure.colorbar(image, ax=axes, shrink=0.7)
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> dict:
    """Run the recipe; return the maps."""
    import tyro

    given = sys.argv[1:] if arguments is None else arguments
    options = (tyro.conf.PositionalRequiredArgs,)
    config = tyro.cli(Config, args=given, description=__doc__, config=options)
    tokens, pictures = maps(config)
    draw(tokens, pictures, config.output)
    print(f"Saved {config.output}")
    return pictures


if __name__ == "__main__":
    main()
