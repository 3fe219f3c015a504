"""GPT-1 in Hugging Face transformers (`OpenAIGPT`): names, layouts and configuration."""

from collections.abc import Collection, Mapping

import numpy as np

from keras_bert3.checkpoints import huggingface_labels
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.mapping import (
    Rule,
    dense,
    for_layers,
    norm,
    rename,
    split,
    tie,
    transpose,
)

MODEL_TYPE = "openai-gpt"
PREFIX = "transformer."
TOKEN_TABLE = "tokens_embed.weight"
BASE_PARTS = ("tokens_embed", "positions_embed", "h")
BUFFERS = (".attn.bias", "position_ids")
"""Ends of the names of causal masks and position numbers that old files hold."""
OPTIONAL = ()
WITHOUT_POOLER = ()
PAD_ID = 0
"""What stands on padding; the tokenizer has no token for it, and masks tell it from its text."""
DROPOUT = None
"""Their entry for the dropout before a head: they have none."""

# Their "gelu" is the tanh formula here, unlike in their BERT.
ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}

# How their multiple-choice head reads a sequence: the last token, a matrix, nothing else.
_SUMMARY = {
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "summary_activation": None,
    "summary_proj_to_labels": True,
}

# Ours, theirs, and their default where config.json leaves the entry out.
_CONFIG = (
    ("vocabulary_size", "vocab_size", 40478),
    ("num_layers", "n_layer", 12),
    ("num_heads", "n_head", 12),
    ("hidden_dim", "n_embd", 768),
    ("dropout", "resid_pdrop", 0.1),
    ("attention_dropout", "attn_pdrop", 0.1),
    ("max_sequence_length", "n_positions", 512),
    ("layer_norm_epsilon", "layer_norm_epsilon", 1e-5),
    ("initializer_range", "initializer_range", 0.02),
)
_ARCHITECTURES = {
    frozenset(): "OpenAIGPTLMHeadModel",
    frozenset({"multiple_choice_head"}): "OpenAIGPTDoubleHeadsModel",
    frozenset({"classifier"}): "OpenAIGPTForSequenceClassification",
}
# For each of their classes, our task, its arguments and the further heads that files hold.
_TASKS = {
    "OpenAIGPTLMHeadModel": ("CausalLM", {}, ()),
    "OpenAIGPTDoubleHeadsModel": ("CausalLM", {}, ("multiple_choice_head",)),
    "OpenAIGPTForSequenceClassification": ("TextClassifier", {"use_bias": False}, ()),
}
_QUERY_KEY_VALUE = tuple(f"block_{{i}}/attention/{name}" for name in ("query", "key", "value"))


def _conv1d(ours: str, theirs: str) -> list[Rule]:
    """Their `Conv1D` keeps its matrix as `[in, out]`, like a `Dense` layer."""
    return [
        rename(f"{ours}/kernel", f"{theirs}.weight"),
        rename(f"{ours}/bias", f"{theirs}.bias"),
    ]


_BLOCK = "transformer.h.{i}"
_LAYER = [
    *(
        split([f"{name}/{ours}" for name in _QUERY_KEY_VALUE], f"{_BLOCK}.attn.c_attn.{theirs}")
        for ours, theirs in (("kernel", "weight"), ("bias", "bias"))
    ),
    *_conv1d("block_{i}/attention/output_projection", f"{_BLOCK}.attn.c_proj"),
    *norm("block_{i}/attention_norm", f"{_BLOCK}.ln_1"),
    *_conv1d("block_{i}/feed_forward/intermediate", f"{_BLOCK}.mlp.c_fc"),
    *_conv1d("block_{i}/feed_forward/output_projection", f"{_BLOCK}.mlp.c_proj"),
    *norm("block_{i}/output_norm", f"{_BLOCK}.ln_2"),
]


def _without_bias(ours: str, theirs: str) -> Rule:
    """A `Dense` layer here, a `Linear` without bias there."""

    def save(arrays: list[np.ndarray]) -> list[np.ndarray]:
        kernel, bias = arrays
        if bias.any():
            raise ValueError(
                f"Expected `{ours}/bias` to be zero, since transformers has no place for it. "
                f"Received: values up to {np.abs(bias).max()}"
            )
        return [kernel.T]

    return Rule(
        (f"{ours}/kernel", f"{ours}/bias"),
        (f"{theirs}.weight",),
        lambda arrays: [arrays[0].T, np.zeros(len(arrays[0]), arrays[0].dtype)],
        save,
    )


def rules_for(backbone, heads: Mapping) -> list[Rule]:
    """Return the table for a backbone with these heads on it.

    The language model's output matrix is the token table, so files may hold either or both.
    """
    has_bias = getattr(heads.get("classifier"), "use_bias", False)
    return [
        tie("embeddings/token/embeddings", "transformer.tokens_embed.weight", "lm_head.weight"),
        rename("embeddings/position/embeddings", "transformer.positions_embed.weight"),
        *for_layers(_LAYER, backbone.num_layers),
        *dense("multiple_choice_head", "multiple_choice_head.summary"),
        _without_bias("classifier", "score")
        if has_bias
        else transpose("classifier/kernel", "score.weight"),
    ]


def describe(config: dict, file: str) -> Description:
    """Translate their config.json.

    Raises:
        ValueError: for an activation we do not know, a dropout we have no place for, or a head that
            reads a sequence in another way.
    """
    activation = config.get("afn", "gelu")
    if str(activation) not in ACTIVATIONS:
        raise ValueError(
            f"Expected afn among {sorted(ACTIVATIONS)} in {file}. Received: {activation!r}"
        )
    dropouts = {config.get(f"{name}_pdrop", 0.1) for name in ("resid", "embd")}
    if len(dropouts) > 1:
        raise ValueError(
            f"Expected resid_pdrop and embd_pdrop alike in {file}. Received: {sorted(dropouts)}"
        )
    backbone = {ours: config.get(theirs, default) for ours, theirs, default in _CONFIG}
    architecture = (config.get("architectures") or [""])[0]
    task_class, task_config, more_heads = _TASKS.get(architecture, (None, {}, ()))
    for name, value in _SUMMARY.items() if more_heads else ():
        if config.get(name, value) != value:
            raise ValueError(f"Expected {name}={value!r} in {file}. Received: {config[name]!r}")
    return Description(
        backbone_class="GPTBackbone",
        backbone_config={
            **backbone,
            "intermediate_dim": 4 * backbone["hidden_dim"],
            "activation": ACTIVATIONS[activation],
            "embedding_dropout": "sum",
        },
        task_class=task_class,
        task_config={**task_config, **huggingface_labels.task_config(config, task_class)},
        more_heads=more_heads,
        tokenizer_class="BytePairTokenizer",
    )


def config_of(backbone, heads: Collection[str]) -> dict:
    """Write our configuration in their words.

    Raises:
        ValueError: for an activation or a width they have no entry for.
    """
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if backbone.activation not in names:
        raise ValueError(
            f"Expected an activation among {sorted(names)}. Received: {backbone.activation!r}"
        )
    if backbone.intermediate_dim != 4 * backbone.hidden_dim:
        raise ValueError(
            f"Expected intermediate_dim={4 * backbone.hidden_dim}, four times hidden_dim, as in "
            f"transformers. Received: intermediate_dim={backbone.intermediate_dim}"
        )
    return {
        "architectures": [architecture(heads)],
        "model_type": MODEL_TYPE,
        "afn": names[backbone.activation],
        **{theirs: getattr(backbone, ours) for ours, theirs, _ in _CONFIG},
        "embd_pdrop": backbone.dropout,
        # Their classifier reads the last token that is not this one.
        "pad_token_id": PAD_ID,
        "tie_word_embeddings": True,
    }


def architecture(heads: Collection[str]) -> str:
    """Return their class for a backbone with these heads; a bare backbone is a language model.

    Raises:
        ValueError: if they have none.
    """
    if frozenset(heads) not in _ARCHITECTURES:
        raise ValueError(
            "Expected heads that one class of transformers has. Received: "
            f"{', '.join(sorted(heads))}"
        )
    return _ARCHITECTURES[frozenset(heads)]


def load_tokenizer(folder):
    """Load vocab.json and merges.txt, or None where there are none."""
    from keras_bert3.tokenizers.byte_pair import BytePairTokenizer

    return BytePairTokenizer.load(folder) if (folder / "vocab.json").is_file() else None
