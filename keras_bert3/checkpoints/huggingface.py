"""Folders of Hugging Face transformers: config.json, weights in four forms, a tokenizer."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from keras_bert3.checkpoints import (
    folders,
    huggingface_bert,
    huggingface_deberta,
    huggingface_deberta_tokenizer,
    huggingface_gpt,
    huggingface_labels,
    transfer,
)
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.huggingface_tokenizer import load_word_piece
from keras_bert3.checkpoints.mapping import Rule, cast
from keras_bert3.checkpoints.parts import parts_of
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.tensor_files import open_tensors
from keras_bert3.checkpoints.variables import check_complete, variables_by_path

_FAMILIES = {
    family.MODEL_TYPE: family
    for family in (
        huggingface_bert,
        huggingface_gpt,
        huggingface_deberta.V1,
        huggingface_deberta.V2,
    )
}
_FAMILY_OF = {
    "BertBackbone": huggingface_bert,
    "GPTBackbone": huggingface_gpt,
    "DebertaBackbone": huggingface_deberta.V1,
    "DebertaV2Backbone": huggingface_deberta.V2,
}
_UNKNOWN = {"LeftToRightBertBackbone"}
"""Networks that transformers would take for others."""
DTYPES = ("float32", "float16", "bfloat16")
"""Of the tensors that can be written."""
_OLD_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def describe(folder: Path) -> Description:
    """Read which model the folder's `config.json` describes."""
    config = folders.read_json(folder / "config.json")
    return _family(folder).describe(config, f"'{folder / 'config.json'}'")


def load_tokenizer(folder: Path, description: Description):
    """Load the folder's tokenizer, or None where it has none."""
    family = _family(folder)
    if family is huggingface_gpt:
        return huggingface_gpt.load_tokenizer(folder)
    if isinstance(family, huggingface_deberta.Family):
        return huggingface_deberta_tokenizer.load_tokenizer(folder)
    return load_word_piece(folder)


def load_weights(folder: Path, backbone, heads: dict) -> LoadReport:
    """Fill a backbone and heads from the folder's weights."""
    family = _family(folder)
    tensors = open_tensors(folder)
    names, ignored = canonical_names(tensors.file_of, family)
    if isinstance(family, huggingface_deberta.Family):
        family.check_names(names, folder)
    report = transfer.load(
        _rules(family, backbone, heads),
        names,
        tensors.read,
        variables_by_path(backbone, heads),
        f"'{folder}'",
    )
    check_complete(report, heads, family.OPTIONAL, folder)
    return report + LoadReport(ignored=tuple(ignored))


def canonical_names(names: Iterable[str], family: Any) -> tuple[dict, list]:
    """Find the names that the tables use for the tensors of a file.

    Files differ in what stands before the names of the base model (`bert.`, nothing, or whatever a
    wrapper added) and in the oldest names of LayerNorm's weights.

    Returns:
        From names in the tables to names in the file, and the names of constant buffers.

    Raises:
        ValueError: if the file holds several models.
    """
    names = list(names)
    found = [name for name in names if name.endswith(family.TOKEN_TABLE)]
    if len(found) > 1:
        raise ValueError(f"Expected one model in a checkpoint. Received: {', '.join(found)}")
    base = found[0].removesuffix(family.TOKEN_TABLE) if found else family.PREFIX
    # "module.bert." before the base model means "module." before the heads.
    outer = base[: base[:-1].rfind(".") + 1]
    canonical, ignored = {}, []
    for name in names:
        if name.endswith(family.BUFFERS):
            ignored.append(name)
            continue
        below = name.removeprefix(base)
        is_base = below.split(".")[0] in family.BASE_PARTS
        key = family.PREFIX + below if is_base else name.removeprefix(outer)
        for old, new in _OLD_NAMES.items():
            key = key.removesuffix(old) + new if key.endswith(old) else key
        canonical[key] = name
    return canonical, ignored


def save_huggingface(
    model,
    folder: str | os.PathLike,
    dtype: str = "float32",
    overwrite: bool = False,
    tokenizer=None,
) -> None:
    """Write a backbone or task so that Hugging Face transformers loads it.

    `transformers` finds every tensor it looks for and none besides. Its masked-LM and extractive-QA
    models have no pooler, so that theirs is not written.

    Args:
        model: a `Backbone` or a `Task`.
        folder: where; it must not hold files yet, unless `overwrite`.
        dtype: of the tensors: `float32`, `float16` or `bfloat16`.
        overwrite: replace the checkpoint that stands there.
        tokenizer: to go with a backbone; a task brings its own.

    Raises:
        ValueError: if transformers has no such model, `dtype` is another or cannot hold a weight,
            or `folder` holds files.

    Example:
        >>> save_huggingface(MaskedLM(backbone), "my-bert")
        >>> transformers.BertForPreTraining.from_pretrained("my-bert")
    """
    if dtype not in DTYPES:
        raise ValueError(f"Expected dtype among {', '.join(DTYPES)}. Received: dtype={dtype!r}")
    backbone, heads, tokenizer = parts_of(model, tokenizer)
    classes = [cls.__name__ for cls in type(backbone).__mro__]
    name = next((name for name in classes if name in _FAMILY_OF), None)
    if name is None or not _UNKNOWN.isdisjoint(classes):
        raise ValueError(
            f"Expected a backbone among {sorted(_FAMILY_OF)}. Received: {type(backbone).__name__}"
        )
    family = _FAMILY_OF[name]
    config = {
        **family.config_of(backbone, heads),
        **huggingface_labels.entries(model, family.DROPOUT),
        "dtype": dtype,
    }
    tensors = _tensors_of(family, backbone, heads, dtype)
    with folders.new_folder(folder, overwrite) as fresh:
        folders.write_json(fresh / "config.json", config)
        safetensors.numpy.save_file(tensors, fresh / "model.safetensors", {"format": "pt"})
        if tokenizer is not None:
            tokenizer.save(fresh)


def _tensors_of(family: Any, backbone, heads: Mapping, dtype: str) -> dict[str, np.ndarray]:
    """Name and lay out every weight as transformers does for a model with these heads."""
    variables = variables_by_path(backbone, heads)
    if family.architecture(heads) in family.WITHOUT_POOLER:
        variables = {path: v for path, v in variables.items() if not path.startswith("pooler/")}
    # GPT without a head is their language model, whose names keep the prefix.
    prefix = "" if heads or family is huggingface_gpt else family.PREFIX
    rules = [cast(rule, dtype) for rule in _rules(family, backbone, heads)]
    return {
        name.removeprefix(prefix): np.ascontiguousarray(value)
        for name, value in transfer.save(rules, variables)
    }


def _rules(family, backbone, heads: Mapping) -> list[Rule]:
    """The family's table, which depends on more than the number of layers in some."""
    if family is not huggingface_bert:
        return family.rules_for(backbone, heads)
    return family.rules(backbone.num_layers, heads)


def _family(folder: Path) -> Any:
    """The module that knows the model family of a folder."""
    file = folder / "config.json"
    model_type = folders.read_json(file).get("model_type", huggingface_bert.MODEL_TYPE)
    if model_type not in _FAMILIES:
        raise ValueError(
            f"Expected model_type among {sorted(_FAMILIES)} in '{file}'. Received: {model_type!r}"
        )
    return _FAMILIES[model_type]
