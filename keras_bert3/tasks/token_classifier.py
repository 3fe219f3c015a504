"""A label for every word: named entities, parts of speech."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert3.metrics.entities import Chunk, chunks, tags_of
from keras_bert3.tasks.labels import check_names, class_ids
from keras_bert3.tasks.task import Task
from keras_bert3.tasks.text_batches import TextBatches
from keras_bert3.tasks.token_windows import TokenClassifierPreprocessor, words_in_rows
from keras_bert3.tasks.trained_classes import trained_classes
from keras_bert3.tasks.window_batches import run_in_batches


class LabelledWord(NamedTuple):
    """A word of a text, and what it was found to be.

    Args:
        label: the name of its class, or the number where classes have no names.
        start: its first character in the text.
        end: the character after its last.
        probability: of the label.
    """

    label: Any
    start: int
    end: int
    probability: float


class Entity(NamedTuple):
    """A named entity in a text: `text` is the stretch from `start` to `end`."""

    kind: str
    start: int
    end: int
    text: str
    probability: float


@keras.saving.register_keras_serializable(package="keras_bert3")
class TokenClassifier(Task):
    """Label every word of a text.

        logits = W Dropout(h_t) + b    at the first token t of each word
        loss = sum_t -log softmax(logits_t)[label_t] / (number of words)

    Devlin et al. 2018, section 5.3: "we use the representation of the first sub-token as the input
    to the token-level classifier". Tokens that go on with a word, special tokens and padding have
    weight 0 in loss and metrics. Words are never lost: a text that is too long for a row is read in
    overlapping windows, and each word has the one in which it sees most.

    Args:
        backbone: a `Backbone`; a pooler on it has no part in this task, and is frozen.
        num_classes: number of classes; that of `labels` when None.
        preprocessor: a `TokenClassifierPreprocessor`, or None for those who bring tensors.
        labels: the names of the classes, such as "O", "B-PER", "I-PER".
        dropout: rate before the last layer; the backbone's when None.

    Call arguments:
        inputs: the backbone's.

    Returns:
        Logits `[b, q, c]`.

    `fit` and `evaluate` take lists of words with a label for each (a name or a number, None where a
    word has none), or texts with entities, each a list of (start, end, kind) in characters.
    `predict` on lists of words returns as many labels, on texts a `LabelledWord` for each word, on
    tensors logits.

    Example:
        >>> task = TokenClassifier(backbone, preprocessor=preprocessor, labels=["O", "B-PER"])
        >>> task.fit([["Jim", "slept"]], [["B-PER", "O"]])
        >>> task.predict([["Jim", "ran"]])
        [['B-PER', 'O']]
    """

    head_names = ("token_classifier",)
    fine_tuned_heads = head_names
    preprocessor_class = TokenClassifierPreprocessor

    def __init__(
        self, backbone, num_classes=None, preprocessor=None, labels=None, dropout=None, **kwargs
    ):
        super().__init__(backbone, preprocessor, **kwargs)
        self.labels, self.num_classes = check_names(labels, num_classes)
        self.dropout = backbone.dropout if dropout is None else dropout
        if backbone.has_pooler:
            backbone.pooler.trainable = False
        self.drop = keras.layers.Dropout(self.dropout, dtype=backbone.dtype_policy, name="drop")
        self.token_classifier = keras.layers.Dense(
            self.num_classes,
            kernel_initializer=backbone.initializer(),
            dtype=backbone.dtype_policy,
            name="token_classifier",
        )
        self.token_classifier.build((None, None, backbone.hidden_dim))

    def call(self, inputs, training=None):
        """Score the classes at every token."""
        hidden = self.backbone(inputs, training=training)["sequence_output"]
        return self.token_classifier(self.drop(hidden, training=training))

    def default_compile(self) -> dict[str, Any]:
        """The paper's optimiser, cross-entropy over words, accuracy of words."""
        return {
            "optimizer": self.default_optimizer(None),
            "loss": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            ),
            "weighted_metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }

    def default_optimizer(self, updates):
        """The paper's recipe for fine-tuning this backbone; see `FineTuning`."""
        return self.backbone.fine_tuning.make(updates)

    def is_text(self, x) -> bool:
        """Whether `x` is a text, a list of texts, or a list of lists of words."""
        return is_words(x) or is_texts(x)

    def _text_or_tensors(self, x, y):
        """Bring columns of tables to lists; two words are no pair of texts."""
        x = as_list(x)
        return x, self.encode_labels(y)

    def predict(self, x, batch_size=None, **kwargs):
        """Return labels for words, `LabelledWord`s for texts, logits for anything else."""
        x = as_list(x)
        if is_words(x):
            return [
                [self._name(number) for number in rows.argmax(-1)]
                for rows in self.probabilities(x, batch_size)
            ]
        if is_texts(x):
            return self.label_words(x, batch_size)
        return super().predict(x, batch_size, **kwargs)

    def label_words(self, texts, batch_size=None) -> list[list[LabelledWord]]:
        """Return the words of each text with their likeliest labels."""
        documents = self._encode(texts)
        results, found = self._probabilities(documents, batch_size), []
        for document, rows in zip(documents, results, strict=True):
            words = []
            for number, (start, end), row in zip(
                rows.argmax(-1), document.spans, rows, strict=True
            ):
                words.append(LabelledWord(self._name(number), start, end, float(row[number])))
            found.append(words)
        return found

    def probabilities(self, x, batch_size=None) -> list[np.ndarray]:
        """Return the probability of each class for every word of lists of words, or of texts.

        Returns:
            For each of `x` float32 `[words, c]`.
        """
        return self._probabilities(self._encode(x), batch_size)

    def find_entities(self, texts, batch_size=None) -> list[list[Entity]]:
        """Return the named entities of each text, for labels such as "B-PER", "I-PER" and "O".

        The probability of an entity is that of its least probable word.
        """
        texts, found = [texts] if isinstance(texts, str) else list(texts), []
        for text, words in zip(texts, self.label_words(texts, batch_size), strict=True):
            entities = []
            for kind, first, last in chunks([word.label for word in words]):
                start, end = words[first].start, words[last - 1].end
                probability = min(word.probability for word in words[first:last])
                entities.append(Entity(kind, start, end, text[start:end], probability))
            found.append(entities)
        return found

    def _encode(self, x) -> Any:
        """Tokenise texts or lists of words."""
        preprocessor = self.preprocessor
        if preprocessor is None:
            return self.preprocess(x)  # says what is missing
        x = [x] if isinstance(x, str) else as_list(x)
        return [preprocessor.encode(one) for one in x]

    def _probabilities(self, documents, batch_size) -> list[np.ndarray]:
        """Run every window, and give each word the result of its own."""
        sizes = [len(document.first_tokens) for document in documents]
        results = [np.zeros((size, self.num_classes), "float32") for size in sizes]
        windows = self.preprocessor.windows(documents)
        pack = self.preprocessor.pack_windows
        for number, logits in run_in_batches(self, windows, pack, batch_size or 32):
            window = windows[number]
            is_owned = window.words >= 0
            rows = logits[1 : 1 + len(window.words)][is_owned].astype("float32")
            powers = np.exp(rows - rows.max(-1, keepdims=True))
            results[window.document][window.words[is_owned]] = powers / powers.sum(
                -1, keepdims=True
            )
        return results

    def _name(self, number):
        return int(number) if self.labels is None else self.labels[number]

    def _text_batches(self, texts, labels=None, weights=None, batch_size=None, shuffle=False):
        """Windows of words or texts, in batches of `(x, y, sample_weight)`."""
        documents = self._encode(texts)
        wanted = self._class_ids(texts, documents, labels)
        weights = np.ones(len(documents), "float32") if weights is None else np.asarray(weights)

        def prepare(windows, *_):
            x = self.preprocessor.pack_windows(windows)
            words = words_in_rows(windows, x["token_ids"].shape[1])
            y = np.zeros(words.shape, "int32")
            for row, places, window in zip(y, words, windows, strict=True):
                row[places >= 0] = wanted[window.document][places[places >= 0]]
            row_weights = weights[[window.document for window in windows]]
            is_counted = (words >= 0) & (y >= 0)
            return x, np.maximum(y, 0), (is_counted * row_weights[:, None]).astype("float32")

        windows = self.preprocessor.windows(documents)
        return TextBatches(windows, prepare, None, None, batch_size or 32, shuffle)

    def _class_ids(self, texts, documents, labels) -> list[np.ndarray]:
        """Return a class for every word of every document, -1 where it has no label."""
        if labels is None:
            raise ValueError("Expected a label for every word. Received: y=None")
        texts = [texts] if isinstance(texts, str) else texts
        if len(labels) != len(documents):
            raise ValueError(
                f"Expected labels for {len(documents)} texts. Received: for {len(labels)}"
            )
        rows = []
        for number, (text, document, row) in enumerate(zip(texts, documents, labels, strict=True)):
            row = entity_labels(document.spans, row) if isinstance(text, str) else list(row)
            if len(row) != len(document.first_tokens):
                raise ValueError(
                    f"Expected {len(document.first_tokens)} labels for text {number}, one a word. "
                    f"Received: {len(row)}"
                )
            rows.append(row)
        known = [label for row in rows for label in row if label is not None]
        numbers = iter(class_ids(known, self.num_classes, self.labels) if known else ())
        return [
            np.array([-1 if label is None else next(numbers) for label in row], "int32")
            for row in rows
        ]

    @classmethod
    def usual_preprocessor(cls, tokenizer, backbone, **arguments):
        """Create a preprocessor whose rows fit in the position table."""
        length = min(128, backbone.max_sequence_length)
        return cls.preprocessor_class(tokenizer, **{"sequence_length": length, **arguments})

    @classmethod
    def loaded_config(cls, stored, overrides, new_heads=()):
        """Refuse to count or name a trained head's classes otherwise; see `trained_classes`."""
        return trained_classes("token_classifier", stored, overrides, new_heads)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
        }


def entity_labels(words: Sequence[tuple[int, int]], entities) -> list[str]:
    """Return IOB2 labels of words, for entities given by characters.

    Args:
        words: (start, end) of each word.
        entities: (start, end, kind) of each; a word belongs to the one it overlaps.

    Raises:
        ValueError: for an entity without a word.

    Example: `entity_labels([(0, 3), (4, 9)], [(4, 9, "PER")])` is `["O", "B-PER"]`.
    """
    found = []
    for start, end, kind in sorted(entities):
        inside = [i for i, word in enumerate(words) if word[0] < end and word[1] > start]
        if not inside:
            raise ValueError(
                "Expected entities as (start, end, kind) that hold a word. "
                f"Received: {(start, end, kind)}"
            )
        found.append(Chunk(kind, inside[0], inside[-1] + 1))
    return tags_of(found, len(words))


def as_list(x):
    """Make a list of a column of a table (pandas, polars) or an array of texts or of lists."""
    if type(x).__name__ == "Series" and hasattr(x, "to_numpy"):
        x = x.to_numpy()
    return x.tolist() if isinstance(x, np.ndarray) and x.dtype.kind in "UO" else x


def is_words(x) -> bool:
    """Whether `x` is a list of lists of strings."""
    return _is_list(x) and len(x) > 0 and all(_is_list(row) and _are_texts(row) for row in x)


def is_texts(x) -> bool:
    """Whether `x` is a text or a list of texts."""
    return isinstance(x, str) or (_is_list(x) and len(x) > 0 and _are_texts(x))


def _is_list(x) -> bool:
    return isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.dtype.kind in "UO")


def _are_texts(row) -> bool:
    return all(isinstance(text, str) for text in row)
