"""The functions of an exported task: strings in, tokens in, embeddings out.

| signature         | inputs                                  | for                           |
|-------------------|-----------------------------------------|-------------------------------|
| `serving_default` | `text` (and `text_pair`, or `choices`), | everyone                      |
|                   | or `question` and `context`             |                               |
| `tokens`          | `token_ids`, `segment_ids`, `lengths`   | those with their own tokenizer|
| `embed`           | `text`                                  | vectors: `mean`, `pooled`     |

Where a tokenizer has no graph, `tokens` is `serving_default` too. `segment_ids` are there for
networks that know more than one segment. Rows are told from padding by `lengths`, never by a mask:
a server that joins requests pads them with whatever number comes first.
"""

from collections.abc import Callable
from typing import Any

from keras_bert3.serving.graph_answers import GraphAnswers, answers_have_graph
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_packing import GraphInputs
from keras_bert3.serving.graph_tags import GraphTags, tags_have_graph
from keras_bert3.serving.graph_text import graph_text, has_graph
from keras_bert3.serving.outputs import (
    class_names,
    next_tokens,
    outputs_of,
    top_tokens,
)
from keras_bert3.tasks.causal_lm import CausalLM
from keras_bert3.tasks.extractive_qa import ExtractiveQA
from keras_bert3.tasks.gpt_fine_tuning import GPTSimilarity
from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.tasks.multiple_choice import MultipleChoice
from keras_bert3.tasks.token_classifier import TokenClassifier

UNPAIRED = (CausalLM, MaskedLM, MultipleChoice)
"""Whose rows hold no `text_pair`."""


class Signatures:
    """Makes the functions of one task.

    Args:
        task: on the TensorFlow backend, of policy float32.
        pair: whether `serving_default` takes `text_pair` beside `text`.

    Raises:
        ValueError: for a task that cannot be served, or a pair where there is none.
    """

    def __init__(self, task, pair: bool = False) -> None:
        tf = tensorflow()

        self.task = task
        self.outputs = outputs_of(task)
        self.length = task.backbone.max_sequence_length
        self.has_choices = isinstance(task, MultipleChoice)
        rows = [2] if isinstance(task, GPTSimilarity) else [None] if self.has_choices else []
        self.ids = tf.TensorSpec([None, *rows, None], tf.int32)
        self.raw = _function(self._raw)
        self.text: Any = (
            graph_text(task.preprocessor, self.length) if has_graph(task.preprocessor) else None
        )
        self.answers: Any = None
        if isinstance(task, ExtractiveQA) and answers_have_graph(task.preprocessor):
            self.answers = GraphAnswers(task.preprocessor, task.null_threshold)
        self.tags: Any = None
        if isinstance(task, TokenClassifier) and tags_have_graph(task.preprocessor):
            self.tags = GraphTags(task.preprocessor)
        self.pair = pair or isinstance(task, GPTSimilarity)
        if pair and (self.text is None or isinstance(task, UNPAIRED)):
            raise ValueError(
                "Expected a task of one text or two, tokenised in the graph, for pair=True. "
                f"Received: a {type(task).__name__} with "
                f"{type(getattr(task.preprocessor, 'tokenizer', None)).__name__}"
            )

    def functions(self) -> dict[str, Callable]:
        """Return the functions by the names of their signatures, ready to be saved."""
        tf = tensorflow()

        lengths = tf.TensorSpec(self.ids.shape[:-1], tf.int32)
        names = ["token_ids", "segment_ids"] if self._has_segments() else ["token_ids"]
        tokens = {**{name: self.ids for name in names}, "lengths": lengths}
        made = {"tokens": _traced(self.tokens, tokens)}
        if self.answers is not None:
            asked = dict.fromkeys(("question", "context"), tf.TensorSpec([None], tf.string))
            return {"serving_default": _traced(self.answer, asked), **made}
        if self.tags is not None:
            text = {"text": tf.TensorSpec([None], tf.string)}
            return {"serving_default": _traced(self.label, text), **made}
        if self.text is None:
            return {"serving_default": made["tokens"], **made}
        text = {"text": tf.TensorSpec([None], tf.string)}
        second = {}
        if self.has_choices:
            second = {"choices": tf.TensorSpec([None, None], tf.string)}
        elif self.pair:
            second = {"text_pair": tf.TensorSpec([None], tf.string)}
        made["serving_default"] = _traced(self.texts, {**text, **second})
        made["embed"] = _traced(self.embed, text)
        return made

    def resources(self) -> list:
        """Return what the functions use beside weights, and must be saved with them."""
        resource = getattr(getattr(self.text, "tokenize", None), "resource", None)
        return [] if resource is None else [resource]

    def _has_segments(self) -> bool:
        return (self.task.backbone.num_segments or 0) > 1

    def _raw(self, **inputs):
        """Run the network: what `task(inputs)` returns."""
        tf = tensorflow()

        lengths = inputs.pop("lengths")
        column = tf.range(tf.shape(inputs["token_ids"])[-1])
        mask = column < lengths[..., None]
        return self.task({**inputs, "padding_mask": mask}, training=False)

    def tokens(self, **inputs):
        """Answer for token ids."""
        tf = tensorflow()

        with tf.control_dependencies(self._checks(inputs)):
            inputs = {name: tf.identity(value) for name, value in inputs.items()}
        return self.outputs(self.task, self.raw(**inputs), inputs)

    def texts(self, text, text_pair=None, choices=None):
        """Answer for strings."""
        if isinstance(self.task, MaskedLM):
            return self._fill(text)
        if self.has_choices:
            inputs = self._of_choices(text, choices)
        elif isinstance(self.task, GPTSimilarity):
            inputs = self.text.both_ways(text, text_pair)
        else:
            inputs = self.text(text, text_pair)
        named = self._named(inputs)
        found = self.outputs(self.task, self.raw(**named), named)
        if isinstance(self.task, CausalLM):
            tokenizer = self.task.preprocessor.tokenizer
            found |= next_tokens(found["log_probabilities"], tokenizer.vocabulary)
        return found

    def label(self, text):
        """Label the words of texts of any length."""
        windows = self.tags.windows(text)
        logits = self.raw(**self._named(windows.inputs))
        return self.tags.tags(text, windows, logits, class_names(self.task))

    def answer(self, question, context):
        """Answer questions from texts of any length."""
        windows = self.answers.windows(question, context)
        logits = self.raw(**self._named(windows.inputs))
        return self.answers.answers(context, windows, logits["start"], logits["end"])

    def embed(self, text):
        """Return vectors of texts: the mean over their tokens, and the network's own summary."""
        tf = tensorflow()

        inputs = self.text(text)
        mask = tf.sequence_mask(inputs.lengths, tf.shape(inputs.token_ids)[1])
        named = self._named(inputs)
        del named["lengths"]
        backbone = self.task.backbone
        outputs = backbone({**named, "padding_mask": mask}, training=False)
        weights = tf.cast(mask, tf.float32)[..., None]
        total = tf.reduce_sum(outputs["sequence_output"] * weights, 1)
        vectors = {"mean": total / tf.reduce_sum(weights, 1)}
        if backbone.has_pooler:
            vectors["pooled"] = outputs["pooled_output"]
        return vectors

    def _fill(self, text):
        """Suggest tokens for every [MASK] of every text."""
        tf = tensorflow()

        inputs = self.text.with_masks(text)
        is_masked = inputs.token_ids == self.text.mask_id
        places = tf.RaggedTensor.from_row_lengths(
            tf.cast(tf.where(is_masked)[:, 1], tf.int32),
            tf.reduce_sum(tf.cast(is_masked, tf.int64), 1),
            validate=False,
        )
        named = {**self._named(inputs), "mask_positions": places.to_tensor()}
        is_mask = tf.sequence_mask(places.row_lengths(), tf.shape(named["mask_positions"])[1])
        logits = self.raw(**named)["masked_lm"]
        return top_tokens(logits, is_mask, self.task.preprocessor.tokenizer.vocabulary)

    def _of_choices(self, text, choices) -> GraphInputs:
        """Pack every text with each of its choices: `[b, n, q]`."""
        tf = tensorflow()

        shape = tf.shape(choices)
        first = tf.reshape(tf.tile(text[:, None], [1, shape[1]]), [-1])
        rows = self.text(first, tf.reshape(choices, [-1]))
        grouped = [tf.reshape(value, tf.concat([shape, tf.shape(value)[1:]], 0)) for value in rows]
        return GraphInputs(*grouped)

    def _named(self, inputs: GraphInputs) -> dict:
        named = inputs._asdict()
        if not self._has_segments():
            del named["segment_ids"]
        return named

    def _checks(self, inputs) -> list:
        """Say in words what is wrong with tokens; some devices would compute with nonsense."""
        tf = tensorflow()

        ids, lengths = inputs["token_ids"], inputs["lengths"]
        size, columns = self.task.backbone.vocabulary_size, tf.shape(ids)[-1]
        is_shaped = tf.reduce_all(tf.shape(ids)[:-1] == tf.shape(lengths))
        checks = [
            (is_shaped, "Expected one of lengths for each row of token_ids"),
            (tf.reduce_all((ids >= 0) & (ids < size)), f"Expected token_ids from 0 to {size - 1}"),
            (
                tf.reduce_all((lengths >= 1) & (lengths <= columns)),
                "Expected lengths from 1 to the number of columns of token_ids",
            ),
        ]
        if "segment_ids" in inputs:
            segments, most = inputs["segment_ids"], self.task.backbone.num_segments - 1
            is_known = tf.reduce_all((segments >= 0) & (segments <= most))
            checks.append((is_known, f"Expected segment_ids from 0 to {most}"))
            is_shaped = tf.reduce_all(tf.shape(ids) == tf.shape(segments))
            checks.append((is_shaped, "Expected segment_ids of the shape of token_ids"))
        if self.length is not None:
            checks.append((columns <= self.length, f"Expected at most {self.length} tokens a row"))
        return [tf.debugging.Assert(condition, [message]) for condition, message in checks]


def _function(function: Callable):
    """Make a graph of a function; loops and branches are TensorFlow's own already."""
    tf = tensorflow()

    return tf.function(function, autograph=False)


def _traced(function: Callable, specs):
    """Trace a method for named inputs."""
    return _function(lambda **inputs: function(**inputs)).get_concrete_function(**specs)
