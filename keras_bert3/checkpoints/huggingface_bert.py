"""BERT in Hugging Face transformers: names, layouts and configuration."""

from collections.abc import Collection

from keras_bert3.checkpoints import huggingface_labels
from keras_bert3.checkpoints.description import Description
from keras_bert3.checkpoints.mapping import Rule, dense, for_layers, norm, rename, tie

MODEL_TYPE = "bert"
PREFIX = "bert."
TOKEN_TABLE = "embeddings.word_embeddings.weight"
BASE_PARTS = ("embeddings", "encoder", "pooler")
BUFFERS = ("position_ids", "token_type_ids")
"""Ends of the names of constant tables that older versions of transformers saved with weights."""
OPTIONAL = ("pooler/",)
"""Parts of the backbone that a checkpoint may lack: masked LMs are published without a pooler."""

DROPOUT = "classifier_dropout"
"""Rate before the head of a fine-tuned model; null where it is the backbone's."""

ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}

# Ours, theirs, and their default where config.json leaves the entry out.
_CONFIG = (
    ("vocabulary_size", "vocab_size", 30522),
    ("num_layers", "num_hidden_layers", 12),
    ("num_heads", "num_attention_heads", 12),
    ("hidden_dim", "hidden_size", 768),
    ("intermediate_dim", "intermediate_size", 3072),
    ("dropout", "hidden_dropout_prob", 0.1),
    ("attention_dropout", "attention_probs_dropout_prob", 0.1),
    ("max_sequence_length", "max_position_embeddings", 512),
    ("num_segments", "type_vocab_size", 2),
    ("layer_norm_epsilon", "layer_norm_eps", 1e-12),
    ("initializer_range", "initializer_range", 0.02),
)
_NOT_OURS = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}

# For each of their classes, our task and its arguments.
_TASKS = {
    "BertForPreTraining": ("MaskedLM", {"next_sentence": True}),
    "BertForMaskedLM": ("MaskedLM", {"next_sentence": False}),
    "BertForSequenceClassification": ("TextClassifier", {}),
    "BertForMultipleChoice": ("MultipleChoice", {}),
    "BertForTokenClassification": ("TokenClassifier", {}),
    "BertForQuestionAnswering": ("ExtractiveQA", {}),
}

_ENCODER = "bert.encoder.layer.{i}"
_LAYER = [
    *dense("block_{i}/attention/query", f"{_ENCODER}.attention.self.query"),
    *dense("block_{i}/attention/key", f"{_ENCODER}.attention.self.key"),
    *dense("block_{i}/attention/value", f"{_ENCODER}.attention.self.value"),
    *dense("block_{i}/attention/output_projection", f"{_ENCODER}.attention.output.dense"),
    *norm("block_{i}/attention_norm", f"{_ENCODER}.attention.output.LayerNorm"),
    *dense("block_{i}/feed_forward/intermediate", f"{_ENCODER}.intermediate.dense"),
    *dense("block_{i}/feed_forward/output_projection", f"{_ENCODER}.output.dense"),
    *norm("block_{i}/output_norm", f"{_ENCODER}.output.LayerNorm"),
]
_REST = [
    rename("embeddings/position/embeddings", "bert.embeddings.position_embeddings.weight"),
    rename("embeddings/segment/embeddings", "bert.embeddings.token_type_embeddings.weight"),
    *norm("embeddings/norm", "bert.embeddings.LayerNorm"),
    *dense("pooler/dense", "bert.pooler.dense"),
    *dense("masked_lm_head/dense", "cls.predictions.transform.dense"),
    *norm("masked_lm_head/norm", "cls.predictions.transform.LayerNorm"),
    *dense("next_sentence_head", "cls.seq_relationship"),
    *dense("classifier", "classifier"),
    *dense("multiple_choice_head", "classifier"),
    *dense("token_classifier", "classifier"),
    *dense("span_head", "qa_outputs"),
]


def rules(num_layers: int, heads: Collection[str]) -> list[Rule]:
    """Return the table for a backbone of `num_layers` layers with these heads on it.

    The masked-LM head's output matrix is the token table, so files may hold either or both; a
    backbone without that head looks at the token table alone.
    """
    table = ("embeddings/token/embeddings", "bert.embeddings.word_embeddings.weight")
    decoder = ["cls.predictions.decoder.weight"] if "masked_lm_head" in heads else []
    return [
        tie(*table, *decoder),
        *for_layers(_LAYER, num_layers),
        *_REST,
        tie("masked_lm_head/bias", "cls.predictions.bias", "cls.predictions.decoder.bias"),
    ]


def describe(config: dict, file: str) -> Description:
    """Translate their config.json.

    Raises:
        ValueError: for a variant of BERT that computes something else.
    """
    for name, value in _NOT_OURS.items():
        if config.get(name, value) != value:
            raise ValueError(f"Expected {name}={value!r} in {file}. Received: {config[name]!r}")
    activation = config.get("hidden_act", "gelu")
    if str(activation) not in ACTIVATIONS:
        raise ValueError(
            f"Expected hidden_act among {sorted(ACTIVATIONS)} in {file}. Received: {activation!r}"
        )
    architectures = config.get("architectures") or [""]
    task_class, task_config = _TASKS.get(architectures[0], (None, {}))
    return Description(
        backbone_class="BertBackbone",
        backbone_config={**backbone_config(config), "activation": ACTIVATIONS[activation]},
        task_class=task_class,
        task_config={
            **task_config,
            **huggingface_labels.task_config(config, task_class, DROPOUT),
        },
        tokenizer_class="WordPieceTokenizer",
    )


def backbone_config(config: dict) -> dict:
    """Translate all but the activation, which Google's files spell alike and mean otherwise."""
    return {ours: config.get(theirs, default) for ours, theirs, default in _CONFIG}


def sizes_of(backbone) -> dict:
    """The reverse of `backbone_config`."""
    return {theirs: getattr(backbone, ours) for ours, theirs, _ in _CONFIG}


def config_of(backbone, heads: Collection[str]) -> dict:
    """Write our configuration in their words.

    Raises:
        ValueError: for an activation they have no name for.
    """
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if backbone.activation not in names:
        raise ValueError(
            f"Expected an activation among {sorted(names)}. Received: {backbone.activation!r}"
        )
    return {
        "architectures": [architecture(heads)],
        "model_type": MODEL_TYPE,
        "hidden_act": names[backbone.activation],
        **sizes_of(backbone),
        "tie_word_embeddings": True,
    }


def architecture(heads: Collection[str]) -> str:
    """Return their class for a backbone with these heads.

    Raises:
        ValueError: if they have none.
    """
    classes = {
        frozenset(): "BertModel",
        frozenset({"masked_lm_head", "next_sentence_head"}): "BertForPreTraining",
        frozenset({"masked_lm_head"}): "BertForMaskedLM",
        frozenset({"next_sentence_head"}): "BertForNextSentencePrediction",
        frozenset({"classifier"}): "BertForSequenceClassification",
        frozenset({"multiple_choice_head"}): "BertForMultipleChoice",
        frozenset({"token_classifier"}): "BertForTokenClassification",
        frozenset({"span_head"}): "BertForQuestionAnswering",
    }
    if frozenset(heads) not in classes:
        raise ValueError(
            "Expected heads that one class of transformers has. Received: "
            f"{', '.join(sorted(heads))}"
        )
    return classes[frozenset(heads)]


WITHOUT_POOLER = ("BertForMaskedLM", "BertForTokenClassification", "BertForQuestionAnswering")
"""Their classes that have no pooler; ours is left out of what is written for them."""
