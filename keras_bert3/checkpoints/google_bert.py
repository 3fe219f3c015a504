"""Checkpoints of google-research/bert: bert_config.json, a TensorFlow 1 checkpoint, vocab.txt.

TensorFlow reads and writes the checkpoint files, on whatever backend the model itself runs.
"""

import functools
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.backbones.left_to_right_bert import LeftToRightBertBackbone
from keras_bert3.checkpoints import folders, huggingface_bert, transfer
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.mapping import Rule, for_layers, rename, transpose
from keras_bert3.checkpoints.parts import parts_of
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import check_complete, variables_by_path
from keras_bert3.tokenizers import word_piece
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

CONFIG_FILE = "bert_config.json"
CHECKPOINT = "bert_model.ckpt"
LAYER_NORM_EPSILON = 1e-12

# `modeling.py` defines "gelu" by the tanh formula.
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}
_NOT_WEIGHTS = re.compile(
    r"(^|/)((adam|lamb|lars)_[a-z]+|Adam(_1)?|Momentum|global_step|_CHECKPOINTABLE_OBJECT_GRAPH)$"
    r"|^(beta[12]_power|loss_scale.*|good_steps.*)$"
)


def _scoped(layer: str, scope: str, *names: tuple[str, str]) -> list[Rule]:
    return [rename(f"{layer}/{ours}", f"{scope}/{theirs}") for ours, theirs in names]


def _dense(ours: str, theirs: str) -> list[Rule]:
    return _scoped(ours, theirs, ("kernel", "kernel"), ("bias", "bias"))


def _norm(ours: str, theirs: str) -> list[Rule]:
    return _scoped(ours, f"{theirs}/LayerNorm", ("gamma", "gamma"), ("beta", "beta"))


def _output(ours: str, scope: str) -> list[Rule]:
    """A head's matrix is `[classes, hidden]` there, and its names are not those of a layer."""
    return [
        transpose(f"{ours}/kernel", f"{scope}output_weights"),
        rename(f"{ours}/bias", f"{scope}output_bias"),
    ]


_ENCODER = "bert/encoder/layer_{i}"
_LAYER = [
    *_dense("block_{i}/attention/query", f"{_ENCODER}/attention/self/query"),
    *_dense("block_{i}/attention/key", f"{_ENCODER}/attention/self/key"),
    *_dense("block_{i}/attention/value", f"{_ENCODER}/attention/self/value"),
    *_dense("block_{i}/attention/output_projection", f"{_ENCODER}/attention/output/dense"),
    *_norm("block_{i}/attention_norm", f"{_ENCODER}/attention/output"),
    *_dense("block_{i}/feed_forward/intermediate", f"{_ENCODER}/intermediate/dense"),
    *_dense("block_{i}/feed_forward/output_projection", f"{_ENCODER}/output/dense"),
    *_norm("block_{i}/output_norm", f"{_ENCODER}/output"),
]
_REST = [
    rename("embeddings/token/embeddings", "bert/embeddings/word_embeddings"),
    rename("embeddings/segment/embeddings", "bert/embeddings/token_type_embeddings"),
    rename("embeddings/position/embeddings", "bert/embeddings/position_embeddings"),
    *_norm("embeddings/norm", "bert/embeddings"),
    *_dense("pooler/dense", "bert/pooler/dense"),
    *_dense("masked_lm_head/dense", "cls/predictions/transform/dense"),
    *_norm("masked_lm_head/norm", "cls/predictions/transform"),
    rename("masked_lm_head/bias", "cls/predictions/output_bias"),
    *_output("next_sentence_head", "cls/seq_relationship/"),
    *_output("classifier", ""),
    *_output("span_head", "cls/squad/"),
]


def rules(num_layers: int) -> list[Rule]:
    """Return the table for a backbone of `num_layers` layers and all heads."""
    return [*for_layers(_LAYER, num_layers), *_REST]


def describe(folder: Path) -> Description:
    """Read `bert_config.json`, and from the checkpoint's index which pretraining heads it holds."""
    file = folder / CONFIG_FILE
    config = {"type_vocab_size": 16, **folders.read_json(file)}
    activation = config.get("hidden_act", "gelu")
    if str(activation) not in _ACTIVATIONS:
        raise ValueError(
            f"Expected hidden_act among {sorted(_ACTIVATIONS)} in '{file}'. "
            f"Received: {activation!r}"
        )
    backbone = huggingface_bert.backbone_config(config)
    return Description(
        backbone_class="BertBackbone",
        backbone_config={**backbone, "activation": _ACTIVATIONS[activation]},
        **_task(folder),
        tokenizer_class="WordPieceTokenizer",
    )


def _task(folder: Path) -> dict:
    """Say which task the checkpoint is of, without TensorFlow.

    An index is a sorted table of names, each without what it shares with the one before
    (tensorflow/core/lib/io/table_format.txt); the ends of the first names of either head stand in
    it as they are.
    """
    index = b"".join(file.read_bytes() for file in sorted(folder.glob("*.index")))
    if index and b"predictions/output_bias" not in index:
        return {}
    next_sentence = not index or b"seq_relationship/output_" in index
    return {"task_class": "MaskedLM", "task_config": {"next_sentence": next_sentence}}


def load_tokenizer(folder: Path, description: Description) -> WordPieceTokenizer | None:
    """Load vocab.txt, or None where there is none.

    Folders of ours say in tokenizer_config.json whether text is folded to lower case. No file of
    theirs does, but capitals do: a vocabulary that has them outside of its special tokens was made
    for text that is not folded.
    """
    file = folder / "vocab.txt"
    if not file.is_file():
        return None
    if (folder / word_piece.CONFIG_FILE).is_file():
        return WordPieceTokenizer.load(folder)
    tokens = WordPieceTokenizer(file, lowercase=False).vocabulary
    cased = any(token != token.lower() for token in tokens if not token.startswith("["))
    return WordPieceTokenizer(file, lowercase=not cased)


def load_weights(folder: Path, backbone, heads: dict) -> LoadReport:
    """Fill a backbone and heads from the checkpoint; optimizer slots are ignored and reported."""
    prefix = _checkpoint_prefix(folder)
    present, read = _open(prefix)
    ignored = tuple(name for name in present if _NOT_WEIGHTS.search(name))
    report = transfer.load(
        rules(backbone.num_layers),
        {name: name for name in present if name not in set(ignored)},
        read,
        variables_by_path(backbone, heads),
        f"'{prefix}'",
    )
    check_complete(report, heads, huggingface_bert.OPTIONAL, folder)
    return report + LoadReport(ignored=ignored)


def _open(prefix: Path) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Return the names of a checkpoint's variables and a function that reads one."""
    tensorflow = _tensorflow(f"to read '{prefix}'")

    def whole(read: Callable, *arguments):
        try:
            return read(*arguments)
        except (tensorflow.errors.OpError, RuntimeError, ValueError, LookupError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ValueError(
                f"Expected a whole TensorFlow checkpoint at '{prefix}'. Received: {reason}"
            ) from error

    reader = whole(tensorflow.train.load_checkpoint, str(prefix))
    names = sorted(whole(reader.get_variable_to_shape_map))
    return names, functools.partial(whole, reader.get_tensor)


def _checkpoint_prefix(folder: Path) -> Path:
    """The one checkpoint of a folder, or the released one among several."""
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    released = folder / CHECKPOINT
    if released in prefixes:
        return released
    if len(prefixes) != 1:
        names = ", ".join(path.name for path in prefixes) or "none"
        raise ValueError(
            f"Expected one TensorFlow checkpoint (*.index) in '{folder}', or {CHECKPOINT} among "
            f"several. Received: {names}"
        )
    return prefixes[0]


def _tensorflow(purpose: str):
    try:
        return importlib.import_module("tensorflow")
    except ImportError as error:
        raise ImportError(
            f"Expected TensorFlow {purpose}: pip install 'keras-bert3[tensorflow]'. "
            f"Received: {error}"
        ) from error


def save_google_bert(
    model, folder: str | os.PathLike, overwrite: bool = False, tokenizer=None
) -> None:
    """Write a BERT backbone or task as google-research/bert does.

    Args:
        model: a `BertBackbone` or a task on one.
        folder: where; it must not hold files yet, unless `overwrite`.
        overwrite: replace the checkpoint that stands there.
        tokenizer: to go with a backbone; a task brings its own.

    Raises:
        ValueError: if the code there computes something else (exact GELU, another epsilon), or
            `folder` holds files.
        ImportError: if TensorFlow is not installed.

    Example:
        >>> save_google_bert(MaskedLM(backbone), "uncased_L-2_H-128_A-2")
    """
    backbone, heads, tokenizer = parts_of(model, tokenizer)
    config = _config_of(backbone)
    variables = variables_by_path(backbone, heads)
    tensors = dict(transfer.save(rules(backbone.num_layers), variables))
    tensorflow = _tensorflow("to write its checkpoints")
    with folders.new_folder(folder, overwrite) as fresh, tensorflow.device("CPU"):
        folders.write_json(fresh / CONFIG_FILE, config)
        tensorflow.raw_ops.SaveV2(
            prefix=str(fresh / CHECKPOINT),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tensorflow.constant(value, "float32") for value in tensors.values()],
        )
        if tokenizer is not None:
            tokenizer.save(fresh)


def _config_of(backbone) -> dict:
    """Write our configuration in their words, where their code computes the same."""
    if not isinstance(backbone, BertBackbone) or isinstance(backbone, LeftToRightBertBackbone):
        raise ValueError(
            "Expected a `BertBackbone`, the network of google-research/bert. "
            f"Received: a `{type(backbone).__name__}`"
        )
    names = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
    if backbone.activation not in names:
        raise ValueError(
            f"Expected an activation among {sorted(names)}, which google-research/bert has. "
            f"Received: {backbone.activation!r}"
        )
    config = huggingface_bert.sizes_of(backbone)
    epsilon = config.pop("layer_norm_eps")
    if epsilon != LAYER_NORM_EPSILON:
        raise ValueError(
            f"Expected layer_norm_epsilon={LAYER_NORM_EPSILON}, as google-research/bert has. "
            f"Received: {epsilon}"
        )
    return {**config, "hidden_act": names[backbone.activation]}
