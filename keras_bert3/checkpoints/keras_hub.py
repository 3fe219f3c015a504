"""KerasHub's BERT: presets on disk, and live backbones of keras_hub and keras_nlp.

KerasHub saves weights by the classes of layers and calls them by their names in memory; one table
of rules uses the names in memory, `_DISK_LAYERS` gives those on disk. Their network is ours with
`gelu_tanh` and 1e-12. Their masked-LM head normalises with another epsilon (1e-5) and is not read.
"""

from pathlib import Path

import h5py
import numpy as np
from keras.ops import convert_to_numpy

from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.checkpoints import folders, transfer
from keras_bert3.checkpoints.blank import blank
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.mapping import Rule, for_layers, rename, reshape
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import check_complete, variables_by_path
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

PACKAGES = ("keras_hub>", "keras_nlp>")
WEIGHTS_FILE = "model.weights.h5"
TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = Path("assets", "tokenizer", "vocabulary.txt")

_CONFIG = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "hidden_dim",
    "intermediate_dim",
    "dropout",
    "max_sequence_length",
    "num_segments",
)
_TABLE, _DENSE, _NORM = ("embeddings",), ("kernel", "bias"), ("gamma", "beta")

# The name on disk, the name in memory, and what the layer's variables are called.
_DISK_LAYERS = (
    ("reversible_embedding", "token_embedding", _TABLE),
    ("position_embedding", "position_embedding", _TABLE),
    ("embedding", "segment_embedding", _TABLE),
    ("layer_normalization", "embeddings_layer_norm", _NORM),
    ("dense", "pooled_dense", _DENSE),
)
_DISK_BLOCK = (
    ("_self_attention_layer/query_dense", "self_attention_layer/query", _DENSE),
    ("_self_attention_layer/key_dense", "self_attention_layer/key", _DENSE),
    ("_self_attention_layer/value_dense", "self_attention_layer/value", _DENSE),
    ("_self_attention_layer/output_dense", "self_attention_layer/attention_output", _DENSE),
    ("_self_attention_layer_norm", "self_attention_layer_norm", _NORM),
    ("_feedforward_intermediate_dense", "feedforward_intermediate_dense", _DENSE),
    ("_feedforward_output_dense", "feedforward_output_dense", _DENSE),
    ("_feedforward_layer_norm", "feedforward_layer_norm", _NORM),
)


def _same(ours: str, theirs: str, variables: tuple[str, ...]) -> list[Rule]:
    return [rename(f"{ours}/{name}", f"{theirs}/{name}") for name in variables]


def rules(num_layers: int, num_heads: int, hidden_dim: int) -> list[Rule]:
    """Return the table; theirs keep heads on an axis of their own, `[w, h, d]`."""
    block, layer = "block_{i}", "transformer_layer_{i}"
    attention, theirs = f"{block}/attention", f"{layer}/self_attention_layer"
    head_dim = hidden_dim // num_heads
    split_kernel, split_bias = (hidden_dim, num_heads, head_dim), (num_heads, head_dim)
    projections = [
        rule
        for name in ("query", "key", "value")
        for rule in (
            reshape(
                f"{attention}/{name}/kernel",
                f"{theirs}/{name}/kernel",
                (hidden_dim, -1),
                split_kernel,
            ),
            reshape(f"{attention}/{name}/bias", f"{theirs}/{name}/bias", (-1,), split_bias),
        )
    ]
    output = f"{attention}/output_projection"
    merge = (num_heads, head_dim, hidden_dim)
    per_layer = [
        *projections,
        reshape(f"{output}/kernel", f"{theirs}/attention_output/kernel", (-1, hidden_dim), merge),
        rename(f"{output}/bias", f"{theirs}/attention_output/bias"),
        *_same(f"{block}/attention_norm", f"{layer}/self_attention_layer_norm", _NORM),
        *_same(
            f"{block}/feed_forward/intermediate", f"{layer}/feedforward_intermediate_dense", _DENSE
        ),
        *_same(
            f"{block}/feed_forward/output_projection", f"{layer}/feedforward_output_dense", _DENSE
        ),
        *_same(f"{block}/output_norm", f"{layer}/feedforward_layer_norm", _NORM),
    ]
    return [
        *_same("embeddings/token", "token_embedding", _TABLE),
        *_same("embeddings/position", "position_embedding", _TABLE),
        *_same("embeddings/segment", "segment_embedding", _TABLE),
        *_same("embeddings/norm", "embeddings_layer_norm", _NORM),
        *_same("pooler/dense", "pooled_dense", _DENSE),
        *for_layers(per_layer, num_layers),
    ]


def describe(folder: Path) -> Description:
    """Read a preset's `config.json`, which must be of a BERT."""
    file = folder / "config.json"
    content = folders.read_json(file)
    if content.get("class_name") != "BertBackbone":
        raise ValueError(
            f"Expected a BertBackbone in '{file}'. Received: {content.get('class_name')!r}"
        )
    return Description("BertBackbone", _our_config(content["config"]))


def _our_config(config: dict) -> dict:
    """Their constructor's arguments as ours; what they fix is spelled out."""
    missing = [name for name in _CONFIG if name not in config]
    if missing:
        raise ValueError(
            f"Expected the configuration of KerasHub's BertBackbone. Received: one without "
            f"{', '.join(missing)}"
        )
    fixed = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12}
    return {**{name: config[name] for name in _CONFIG}, **fixed}


def load_tokenizer(folder: Path, description: Description) -> WordPieceTokenizer | None:
    """Load the preset's vocabulary and its way with case, or None where it has none."""
    if not (folder / VOCABULARY_FILE).is_file():
        return None
    config = folders.read_json(folder / TOKENIZER_FILE).get("config", {})
    return WordPieceTokenizer(
        folder / VOCABULARY_FILE,
        lowercase=config.get("lowercase", False),
        strip_accents=config.get("strip_accents", False),
        special_tokens_in_text=config.get("special_tokens_in_strings", False),
    )


def load_weights(folder: Path, backbone, heads: dict) -> LoadReport:
    """Fill a backbone from `model.weights.h5`; the heads stay as they are."""
    path = folder / WEIGHTS_FILE
    try:
        with h5py.File(path, "r") as file:
            names = {
                live: disk
                for live, disk in _names_on_disk(backbone.num_layers).items()
                if disk in file
            }
            report = _load(backbone, heads, names, lambda name: _array(file, name), f"'{path}'")
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(
            f"Expected the weights of a KerasHub preset at '{path}'. Received: {error}"
        ) from error
    check_complete(report, heads, (), folder)
    return report


def _array(file: h5py.File, name: str) -> np.ndarray:
    return np.asarray(file[name])


def _load(backbone, heads, names, read, source: str) -> LoadReport:
    table = rules(backbone.num_layers, backbone.num_heads, backbone.hidden_dim)
    return transfer.load(table, names, read, variables_by_path(backbone, heads), source)


def _names_on_disk(num_layers: int) -> dict[str, str]:
    """From names in memory to those in `model.weights.h5`."""
    layers = [(f"layers/{disk}", live, names) for disk, live, names in _DISK_LAYERS]
    for i in range(num_layers):
        block = "layers/transformer_encoder" + (f"_{i}" if i else "")
        layers += [
            (f"{block}/{disk}", f"transformer_layer_{i}/{live}", names)
            for disk, live, names in _DISK_BLOCK
        ]
    return {
        f"{live}/{name}": f"{disk}/vars/{position}"
        for disk, live, names in layers
        for position, name in enumerate(names)
    }


def from_keras_hub(live) -> BertBackbone:
    """Copy a live `BertBackbone` of keras_hub or keras_nlp.

    Args:
        live: their backbone, built and in memory.

    Raises:
        ValueError: if it is not a BERT of theirs.

    Example:
        >>> from_keras_hub(keras_hub.models.BertBackbone.from_preset("bert_tiny_en_uncased"))
    """
    config = _our_config(live.get_config())
    weights = {weight.path: weight for weight in live.weights}
    names = {name: name for name in weights}

    def read(name: str):
        return convert_to_numpy(weights[name].value).copy()  # theirs shall not change with ours

    with blank(lambda: BertBackbone(**config)) as backbone:
        report = _load(backbone, {}, names, read, "a live backbone")
        check_complete(report, {}, (), "a live backbone")
    return backbone
