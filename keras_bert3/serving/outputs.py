"""What a served task answers: named outputs, each with the batch as its first dimension.

| task             | outputs                                                                      |
|------------------|------------------------------------------------------------------------------|
| `TextClassifier` | `label` [b], `labels` [b, c], `probabilities` [b, c], `scores` [b, c]        |
|  of one output   | `score` [b]                                                                  |
| `MaskedLM`       | `scores` [b, q, v], `next_sentence` [b, 2]; for strings, of each mask:       |
|                  | `tokens` [b, m, 5], `probabilities` [b, m, 5], likeliest first               |
| `MultipleChoice` | `choice` [b], `probabilities` [b, n], `scores` [b, n]                        |
| `TokenClassifier`| `label` [b, q], `labels` [b, c], `probabilities` and `scores` [b, q, c];     |
|                  | for strings, of each word: `word`, `label`, `start`, `end`, `probability`,   |
|                  | each [b, n]; "" and 0 where a text has fewer words than another              |
| `ExtractiveQA`   | `start` [b, q], `end` [b, q]: scores of an answer's first and last token;    |
|                  | for strings `text`, `start`, `end`, `score`, `null_margin` [b], see `Answer` |
| `TextEmbedder`   | `embedding` [b, w], or [b, q, w] without pooling                             |
| `CausalLM`       | `log_probabilities` [b, v], of the token after the last; for strings also    |
|                  | `tokens` [b, 5] and their `probabilities` [b, 5], likeliest first            |

`labels` are the same for every row: a server that joins and splits batches needs the batch there.
"""

from collections.abc import Callable
from typing import Any

from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.extractive_qa import ExtractiveQA
from keras_bert3.tasks.gpt_fine_tuning import GPTSimilarity
from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.tasks.multiple_choice import MultipleChoice
from keras_bert3.tasks.text_classifier import TextClassifier
from keras_bert3.tasks.text_embedder import TextEmbedder
from keras_bert3.tasks.token_classifier import TokenClassifier

Outputs = dict[str, Any]
TOP = 5
"""Suggestions for each mask."""


def takes_several_rows(task) -> bool:
    """Whether an example is several rows of tokens: inputs are `[b, n, q]`, not `[b, q]`."""
    return isinstance(task, MultipleChoice | GPTSimilarity)


def class_names(task) -> list[str]:
    """Name the classes of a task, by numbers where they have no names."""
    return [str(name) for name in task.labels or range(task.num_classes)]


def of_classifier(task, logits, inputs) -> Outputs:
    """Name the likeliest class of each row or token, and all of them."""
    tf = tensorflow()

    if getattr(task, "is_regression", False):
        return {"score": logits[:, 0]}
    names = tf.constant(class_names(task))
    return {
        "label": tf.gather(names, tf.argmax(logits, -1)),
        "labels": tf.tile(names[None], [tf.shape(logits)[0], 1]),
        "probabilities": tf.nn.softmax(logits),
        "scores": logits,
    }


def of_masked_lm(task, logits, inputs) -> Outputs:
    """Scores of the vocabulary at every position; of next sentences where the task has them."""
    others = {name: value for name, value in logits.items() if name != "masked_lm"}
    return {"scores": logits["masked_lm"], **others}


def of_choices(task, logits, inputs) -> Outputs:
    """Number the best choice, from 0."""
    tf = tensorflow()

    best = tf.argmax(logits, 1)
    return {"choice": best, "probabilities": tf.nn.softmax(logits), "scores": logits}


def of_answers(task, logits, inputs) -> Outputs:
    """Scores of every token to begin and to end the answer."""
    return dict(logits)


def of_embedder(task, vectors, inputs) -> Outputs:
    """The vectors."""
    return {"embedding": vectors}


def of_causal_lm(task, logits, inputs) -> Outputs:
    """Log-probabilities of the token that comes after each row's last real one."""
    tf = tensorflow()

    last = tf.gather(logits, inputs["lengths"] - 1, batch_dims=1)
    return {"log_probabilities": tf.nn.log_softmax(last)}


OUTPUTS: dict[type, Callable] = {
    TextClassifier: of_classifier,
    MaskedLM: of_masked_lm,
    MultipleChoice: of_choices,
    CausalLM: of_causal_lm,
    TokenClassifier: of_classifier,
    ExtractiveQA: of_answers,
    TextEmbedder: of_embedder,
}


def outputs_of(task) -> Callable:
    """Find what names a task's outputs: that of its class, or of the nearest base.

    Raises:
        ValueError: for a task that none is known for.
    """
    for base in type(task).__mro__:
        if base in OUTPUTS:
            return OUTPUTS[base]
    names = ", ".join(cls.__name__ for cls in OUTPUTS)
    raise ValueError(f"Expected a task among {names}. Received: {type(task).__name__}")


def top_tokens(logits, is_mask, vocabulary) -> Outputs:
    """Name the likeliest tokens at masks; "" and 0 where a row has fewer masks than another.

    Args:
        logits: `[b, m, v]`.
        is_mask: bool `[b, m]`.
        vocabulary: the tokens.
    """
    tf = tensorflow()

    best = tf.math.top_k(tf.nn.softmax(logits), min(TOP, len(vocabulary)))
    names = tf.gather(tf.constant(vocabulary), best.indices)
    return {
        "tokens": tf.where(is_mask[..., None], names, ""),
        "probabilities": tf.where(is_mask[..., None], best.values, 0.0),
    }


def next_tokens(log_probabilities, vocabulary) -> Outputs:
    """Name the likeliest of the tokens that may follow.

    Args:
        log_probabilities: `[b, v]`.
        vocabulary: the tokens.
    """
    tf = tensorflow()

    best = tf.math.top_k(log_probabilities, min(TOP, len(vocabulary)))
    names = tf.gather(tf.constant(vocabulary), best.indices)
    return {"tokens": names, "probabilities": tf.exp(best.values)}
