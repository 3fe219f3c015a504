"""The released GPT-1 (openai/finetune-transformer-lm, folder `model`): arrays without names.

`params_shapes.json` lists the shapes of the arrays; `params_0.npy` to `params_9.npy`, joined, hold
their values one after another. The order is that of train.py: positions, tokens, then the layers.
Special tokens are never in the files: they follow the vocabulary, drawn anew for each task.
"""

import itertools
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_bert3.checkpoints import folders, transfer
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.mapping import Rule, for_layers, rename, split
from keras_bert3.checkpoints.parts import parts_of
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import check_complete, variables_by_path

SHAPES_FILE = "params_shapes.json"
NUM_FILES = 10
HEAD_DIM = 64
"""No file tells the number of heads; the released model's are of this width."""
LAYER_NORM_EPSILON = 1e-5

_OF_A_LAYER = (
    *("attn/c_attn/w", "attn/c_attn/b", "attn/c_proj/w", "attn/c_proj/b", "ln_1/g", "ln_1/b"),
    *("mlp/c_fc/w", "mlp/c_fc/b", "mlp/c_proj/w", "mlp/c_proj/b", "ln_2/g", "ln_2/b"),
)


def _conv1d(ours: str, theirs: str) -> list[Rule]:
    return [
        rename(f"{ours}/kernel", f"h{{i}}/{theirs}/w"),
        rename(f"{ours}/bias", f"h{{i}}/{theirs}/b"),
    ]


def _norm(ours: str, theirs: str) -> list[Rule]:
    return [
        rename(f"{ours}/gamma", f"h{{i}}/{theirs}/g"),
        rename(f"{ours}/beta", f"h{{i}}/{theirs}/b"),
    ]


def _joined(ours: str, theirs: str) -> Rule:
    names = [f"block_{{i}}/attention/{name}/{ours}" for name in ("query", "key", "value")]
    return split(names, f"h{{i}}/{theirs}")


_LAYER = [
    _joined("kernel", "attn/c_attn/w"),
    _joined("bias", "attn/c_attn/b"),
    *_conv1d("block_{i}/attention/output_projection", "attn/c_proj"),
    *_norm("block_{i}/attention_norm", "ln_1"),
    *_conv1d("block_{i}/feed_forward/intermediate", "mlp/c_fc"),
    *_conv1d("block_{i}/feed_forward/output_projection", "mlp/c_proj"),
    *_norm("block_{i}/output_norm", "ln_2"),
]
_REST = [
    rename("embeddings/position/embeddings", "positions"),
    rename("embeddings/token/embeddings", "tokens"),
]


def rules(num_layers: int) -> list[Rule]:
    """Return the table for a backbone of `num_layers` layers."""
    return [*_REST, *for_layers(_LAYER, num_layers)]


def names_of(num_layers: int) -> list[str]:
    """Name the arrays in their order."""
    layers = (f"h{i}/{name}" for i in range(num_layers) for name in _OF_A_LAYER)
    return ["positions", "tokens", *layers]


def describe(folder: Path) -> Description:
    """Read sizes off the shapes."""
    shapes = _named_shapes(folder)
    positions, hidden_dim = shapes["positions"]
    return Description(
        backbone_class="GPTBackbone",
        backbone_config={
            "vocabulary_size": shapes["tokens"][0],
            "num_layers": (len(shapes) - 2) // len(_OF_A_LAYER),
            "num_heads": hidden_dim // HEAD_DIM,
            "hidden_dim": hidden_dim,
            "intermediate_dim": shapes["h0/mlp/c_fc/w"][-1],
            "max_sequence_length": positions,
        },
        task_class="CausalLM",
        tokenizer_class="BytePairTokenizer",
    )


def _named_shapes(folder: Path) -> dict[str, list[int]]:
    """Read the shapes by the names of the arrays.

    Raises:
        ValueError: if the file is broken or its arrays are not those of a GPT-1.
    """
    file = folder / SHAPES_FILE
    try:
        shapes = [[int(size) for size in shape] for shape in json.loads(file.read_text("utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"Expected a list of shapes in '{file}'. Received: {error}") from error
    num_layers, rest = divmod(len(shapes) - 2, len(_OF_A_LAYER))
    tables = shapes[:2]
    if rest or num_layers < 1 or [len(s) for s in tables] != [2, 2] or tables[0][1] % HEAD_DIM:
        raise ValueError(
            f"Expected two tables of a width that {HEAD_DIM} divides and {len(_OF_A_LAYER)} arrays "
            f"a layer in '{file}'. Received: {len(shapes)} arrays that begin with {tables}"
        )
    return dict(zip(names_of(num_layers), shapes, strict=True))


def load_tokenizer(folder: Path, description: Description):
    """Load encoder_bpe_40000.json and vocab_40000.bpe, or None where they are absent."""
    from keras_bert3.tokenizers.byte_pair import OPENAI_FILES, BytePairTokenizer

    has_files = all((folder / name).is_file() for name in OPENAI_FILES)
    return BytePairTokenizer.load(folder) if has_files else None


def load_weights(folder: Path, backbone, heads: dict) -> LoadReport:
    """Fill a backbone from the arrays; no head has any."""
    shapes = _named_shapes(folder)
    report = transfer.load(
        rules(backbone.num_layers),
        {name: name for name in shapes},
        _reader(folder, shapes),
        variables_by_path(backbone, heads),
        f"'{folder}'",
    )
    check_complete(report, heads, (), folder)
    return report


def _reader(folder: Path, shapes: dict[str, list[int]]) -> Callable[[str], np.ndarray]:
    """Return a function that reads one array, without the leading 1 of their kernels' shapes.

    Raises:
        ValueError: if files are missing or broken, or their sizes do not add up to the shapes.
    """
    pieces = [_open(folder / f"params_{n}.npy") for n in range(NUM_FILES)]
    sizes = [math.prod(shape) for shape in shapes.values()]
    total = sum(len(piece) for piece in pieces)
    if total != sum(sizes):
        raise ValueError(
            f"Expected {sum(sizes)} values in params_*.npy of '{folder}', as {SHAPES_FILE} says. "
            f"Received: {total}"
        )
    starts = dict(zip(shapes, itertools.accumulate(sizes, initial=0), strict=False))
    edges = np.cumsum([0, *(len(piece) for piece in pieces)])

    def read(name: str) -> np.ndarray:
        first, shape = starts[name], shapes[name]
        last = first + math.prod(shape)
        parts = [
            piece[max(first - edge, 0) : max(last - edge, 0)]
            for piece, edge in zip(pieces, edges, strict=False)
        ]
        return np.concatenate(parts).reshape(shape[1:] if len(shape) == 3 else shape)

    return read


def _open(file: Path) -> np.ndarray:
    try:
        values = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy lets its parsers' errors through, of many kinds
        raise ValueError(f"Expected an array in '{file}'. Received: {error}") from error
    if values.ndim != 1:
        raise ValueError(f"Expected one axis in '{file}'. Received: shape {values.shape}")
    return values


def save_openai_gpt(
    model, folder: str | os.PathLike, overwrite: bool = False, tokenizer=None
) -> None:
    """Write a GPT backbone or language model in the layout of the released one.

    Args:
        model: a `GPTBackbone`, or a task on one that has no head of its own.
        folder: where; it must not hold files yet, unless `overwrite`.
        overwrite: replace the checkpoint that stands there.
        tokenizer: to go with a backbone; a task brings its own.

    Raises:
        ValueError: if the code there computes something else (heads of another width, exact GELU,
            another epsilon), or `folder` holds files.

    Example:
        >>> save_openai_gpt(CausalLM(backbone), "model")
    """
    backbone, heads, tokenizer = parts_of(model, tokenizer)
    _check_network(backbone)
    arrays = dict(transfer.save(rules(backbone.num_layers), variables_by_path(backbone, heads)))
    ordered = [arrays[name] for name in names_of(backbone.num_layers)]
    is_kernel = [name.endswith("/w") for name in names_of(backbone.num_layers)]
    shapes = [
        [1, *a.shape] if k else list(a.shape) for a, k in zip(ordered, is_kernel, strict=True)
    ]
    values = np.concatenate([array.ravel() for array in ordered]).astype("float32")
    with folders.new_folder(folder, overwrite) as fresh:
        (fresh / SHAPES_FILE).write_text(json.dumps(shapes), encoding="utf-8")
        for n, piece in enumerate(np.array_split(values, NUM_FILES)):
            np.save(fresh / f"params_{n}.npy", piece)
        if tokenizer is not None:
            tokenizer.save_openai(fresh)


def _check_network(backbone) -> None:
    """Refuse what train.py does not compute."""
    received = {
        "class": type(backbone).__name__,
        "head width": backbone.hidden_dim / backbone.num_heads,
        "activation": backbone.activation,
        "layer_norm_epsilon": backbone.layer_norm_epsilon,
    }
    expected = {
        "class": "GPTBackbone",
        "head width": HEAD_DIM,
        "activation": "gelu_tanh",
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
    }
    for name, value in expected.items():
        if received[name] != value:
            raise ValueError(
                f"Expected {name} {value}, as in openai/finetune-transformer-lm. "
                f"Received: {received[name]}"
            )
