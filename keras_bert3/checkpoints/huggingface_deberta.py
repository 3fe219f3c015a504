"""DeBERTa v1, v2 and v3 in Hugging Face transformers and in microsoft/DeBERTa's own files."""

import dataclasses
from collections.abc import Collection, Mapping

from keras_bert3.checkpoints import huggingface_labels
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.huggingface_bert import ACTIVATIONS
from keras_bert3.checkpoints.mapping import (
    Rule,
    dense,
    for_layers,
    interleave,
    norm,
    rename,
    transpose,
)

# Ours, theirs, and their default where config.json leaves the entry out.
_SIZES = (
    ("vocabulary_size", "vocab_size", 128100),
    ("num_layers", "num_hidden_layers", 24),
    ("num_heads", "num_attention_heads", 24),
    ("hidden_dim", "hidden_size", 1536),
    ("intermediate_dim", "intermediate_size", 6144),
    ("dropout", "hidden_dropout_prob", 0.1),
    ("attention_dropout", "attention_probs_dropout_prob", 0.1),
    ("max_sequence_length", "max_position_embeddings", 512),
    ("num_segments", "type_vocab_size", 0),
    ("layer_norm_epsilon", "layer_norm_eps", 1e-7),
    ("initializer_range", "initializer_range", 0.02),
)
_V1_DEFAULTS = {
    "vocab_size": 50265,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "intermediate_size": 3072,
}
_ENCODER = "deberta.encoder.layer.{i}"
_BLOCK = [
    *dense("block_{i}/attention/output_projection", f"{_ENCODER}.attention.output.dense"),
    *norm("block_{i}/attention_norm", f"{_ENCODER}.attention.output.LayerNorm"),
    *dense("block_{i}/feed_forward/intermediate", f"{_ENCODER}.intermediate.dense"),
    *dense("block_{i}/feed_forward/output_projection", f"{_ENCODER}.output.dense"),
    *norm("block_{i}/output_norm", f"{_ENCODER}.output.LayerNorm"),
]
_V2_BLOCK = [
    rule
    for name in ("query", "key", "value")
    for rule in dense(f"block_{{i}}/attention/{name}", f"{_ENCODER}.attention.self.{name}_proj")
]
_REST = [
    rename("embeddings/token/embeddings", "deberta.embeddings.word_embeddings.weight"),
    rename("embeddings/segment/embeddings", "deberta.embeddings.token_type_embeddings.weight"),
    *norm("embeddings/norm", "deberta.embeddings.LayerNorm"),
    rename("relative_embeddings/embeddings", "deberta.encoder.rel_embeddings.weight"),
    *norm("relative_embeddings/norm", "deberta.encoder.LayerNorm"),
    Rule(
        ("convolution/convolution/kernel",),
        ("deberta.encoder.conv.conv.weight",),
        lambda arrays: [arrays[0].transpose(2, 1, 0)],
        lambda arrays: [arrays[0].transpose(2, 1, 0)],
    ),
    rename("convolution/convolution/bias", "deberta.encoder.conv.conv.bias"),
    *norm("convolution/norm", "deberta.encoder.conv.LayerNorm"),
    rename("enhanced_mask_decoder/embeddings", "deberta.embeddings.position_embeddings.weight"),
    *dense("masked_lm_head/dense", "lm_predictions.lm_head.dense"),
    *norm("masked_lm_head/norm", "lm_predictions.lm_head.LayerNorm"),
    rename("masked_lm_head/bias", "lm_predictions.lm_head.bias"),
    *dense("pooler/dense", "pooler.dense"),
    *dense("classifier", "classifier"),
    *dense("multiple_choice_head", "classifier"),
    *dense("token_classifier", "classifier"),
    *dense("span_head", "qa_outputs"),
]
_ARCHITECTURES = {
    frozenset(): "Model",
    frozenset({"enhanced_mask_decoder", "masked_lm_head"}): "ForMaskedLM",
    frozenset({"pooler", "classifier"}): "ForSequenceClassification",
    frozenset({"pooler", "multiple_choice_head"}): "ForMultipleChoice",
    frozenset({"token_classifier"}): "ForTokenClassification",
    frozenset({"span_head"}): "ForQuestionAnswering",
}
# For the ends of the names of their classes, our task and its arguments.
_TASKS = {
    "ForMaskedLM": ("MaskedLM", {"next_sentence": False}),
    "ForSequenceClassification": ("TextClassifier", {}),
    "ForMultipleChoice": ("MultipleChoice", {}),
    "ForTokenClassification": ("TokenClassifier", {}),
    "ForQuestionAnswering": ("ExtractiveQA", {}),
}


@dataclasses.dataclass(frozen=True)
class Family:
    """One of the two layouts: `DebertaBackbone` (v1) or `DebertaV2Backbone` (v2 and v3).

    Args:
        MODEL_TYPE: in config.json.
        backbone_class: ours.
        architecture_prefix: how the names of their classes start.
        defaults: what theirs has where config.json leaves an entry out and `_SIZES` says otherwise.
    """

    MODEL_TYPE: str
    backbone_class: str
    architecture_prefix: str
    defaults: Mapping[str, int] = dataclasses.field(default_factory=dict)
    PREFIX: str = "deberta."
    TOKEN_TABLE: str = "embeddings.word_embeddings.weight"
    BASE_PARTS: tuple[str, ...] = ("embeddings", "encoder")
    BUFFERS: tuple[str, ...] = ("position_ids",)
    OPTIONAL: tuple[str, ...] = ()
    WITHOUT_POOLER: tuple[str, ...] = ()
    DROPOUT: str = "cls_dropout"

    @property
    def is_v1(self) -> bool:
        """Whether queries, keys and values are joined in one matrix."""
        return self.MODEL_TYPE == "deberta"

    def rules_for(self, backbone, heads: Collection[str]) -> list[Rule]:
        """Return the table for a backbone with these heads on it."""
        own = _v1_block(backbone.num_heads) if self.is_v1 else _V2_BLOCK
        return [*for_layers([*own, *_BLOCK], backbone.num_layers), *_REST]

    def check_names(self, names: Collection[str], source) -> None:
        """Refuse weights of the other layout.

        Raises:
            ValueError: naming both layouts.
        """
        marks = {True: ".attention.self.in_proj.weight", False: ".attention.self.query_proj.weight"}
        other = [name for name in names if name.endswith(marks[not self.is_v1])]
        if other:
            raise ValueError(
                f"Expected the layout of {self.architecture_prefix} (model_type "
                f"{self.MODEL_TYPE!r}: '{marks[self.is_v1][1:]}') in '{source}'. "
                f"Received: the other layout, with '{other[0]}'"
            )

    def describe(self, config: dict, file: str) -> Description:
        """Translate their config.json.

        Raises:
            ValueError: for a variant of DeBERTa that computes something else.
        """
        _check_variant(config, file, self.is_v1)
        span = config.get("max_relative_positions", -1)
        span = config.get("max_position_embeddings", 512) if span < 1 else span
        backbone = {
            ours: config.get(theirs, self.defaults.get(theirs, default))
            for ours, theirs, default in _SIZES
        }
        backbone |= {
            "activation": _activation(config, "hidden_act", "gelu", file),
            "terms": _terms(config),
            "span": span,
        }
        if not self.is_v1:
            backbone |= {
                "span": config.get("position_buckets", 256),
                "max_position": span,
                "convolution_size": config.get("conv_kernel_size", 0),
                "convolution_activation": _activation(config, "conv_act", "tanh", file),
            }
        architecture = (config.get("architectures") or [""])[0]
        kind = architecture.removeprefix(self.architecture_prefix)
        task_class, task_config = _TASKS.get(kind, (None, {}))
        return Description(
            backbone_class=self.backbone_class,
            backbone_config=backbone,
            task_class=task_class,
            task_config={
                **task_config,
                **huggingface_labels.task_config(config, task_class, self.DROPOUT),
            },
        )

    def config_of(self, backbone, heads: Collection[str]) -> dict:
        """Write our configuration in their words.

        Raises:
            ValueError: for what they have no words for.
        """
        if backbone.p2c_distance != "query_minus_key":
            raise ValueError(
                "Expected p2c_distance='query_minus_key', the only one transformers computes. "
                f"Received: {backbone.p2c_distance!r}"
            )
        config = {
            "architectures": [self.architecture(heads)],
            "model_type": self.MODEL_TYPE,
            "hidden_act": _their_activation(backbone.activation),
            **{theirs: getattr(backbone, ours) for ours, theirs, _ in _SIZES},
            "relative_attention": True,
            "position_biased_input": False,
            "pos_att_type": "|".join(backbone.terms),
            "max_relative_positions": backbone.span,
            "legacy": False,
            "tie_word_embeddings": True,
        }
        if self.is_v1:
            return config
        config |= {
            "max_relative_positions": backbone.max_position,
            "position_buckets": backbone.span,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
        }
        if backbone.convolution_size:
            config["conv_kernel_size"] = backbone.convolution_size
            config["conv_act"] = _their_activation(backbone.convolution_activation)
        return config

    def architecture(self, heads: Collection[str]) -> str:
        """Return their class for a backbone with these heads.

        Raises:
            ValueError: if they have none.
        """
        if frozenset(heads) not in _ARCHITECTURES or (
            self.is_v1 and _ARCHITECTURES[frozenset(heads)] == "ForMultipleChoice"
        ):
            raise ValueError(
                "Expected heads that one class of transformers has. Received: "
                f"{', '.join(sorted(heads))}"
            )
        return self.architecture_prefix + _ARCHITECTURES[frozenset(heads)]


def _v1_block(num_heads: int) -> list[Rule]:
    """v1 joins queries, keys and values head by head, and gives keys no bias."""
    ours, theirs = "block_{i}/attention", f"{_ENCODER}.attention.self"
    kernels = [f"{ours}/{name}/kernel" for name in ("query", "key", "value")]
    return [
        interleave(kernels, f"{theirs}.in_proj.weight", num_heads, transposed=True),
        rename(f"{ours}/query/bias", f"{theirs}.q_bias"),
        rename(f"{ours}/value/bias", f"{theirs}.v_bias"),
        transpose(f"{ours}/position_key/kernel", f"{theirs}.pos_proj.weight"),
        *dense(f"{ours}/position_query", f"{theirs}.pos_q_proj"),
    ]


def _terms(config: dict) -> list[str]:
    """pos_att_type, which is a list or a string with bars, in our order."""
    terms = config.get("pos_att_type") or []
    terms = terms.lower().split("|") if isinstance(terms, str) else terms
    return sorted(term.strip() for term in terms if term.strip())


def _activation(config: dict, name: str, default: str, file: str) -> str:
    """Ours for one of theirs."""
    activation = config.get(name, default)
    if str(activation) not in ACTIVATIONS:
        raise ValueError(
            f"Expected {name} among {sorted(ACTIVATIONS)} in {file}. Received: {activation!r}"
        )
    return ACTIVATIONS[activation]


def _their_activation(activation: str) -> str:
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if activation not in names:
        raise ValueError(f"Expected an activation among {sorted(names)}. Received: {activation!r}")
    return names[activation]


def _check_variant(config: dict, file: str, is_v1: bool) -> None:
    """Refuse what no released model does and we do not compute."""
    wanted = {
        "relative_attention": (True, False),
        "position_biased_input": (False, True),
        "talking_head": (False, False),
        "embedding_size": (config.get("hidden_size"), config.get("hidden_size")),
        "pooler_hidden_act": ("gelu", "gelu"),
    }
    if not is_v1:
        wanted |= {
            "share_att_key": (True, False),
            "norm_rel_ebd": ("layer_norm", "none"),
            "conv_groups": (1, 1),
        }
    for name, (value, default) in wanted.items():
        if config.get(name, default) != value:
            raise ValueError(
                f"Expected {name}={value!r} in {file}. Received: {config.get(name, default)!r}"
            )


V1 = Family("deberta", "DebertaBackbone", "Deberta", _V1_DEFAULTS)
V2 = Family("deberta-v2", "DebertaV2Backbone", "DebertaV2")
