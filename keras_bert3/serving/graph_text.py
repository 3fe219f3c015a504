"""From strings to a network's inputs inside a graph: what a task's preprocessor does in Python."""

from collections.abc import Callable

from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_packing import GraphInputs, of_equal_length, pack
from keras_bert3.serving.graph_sentence_piece import GraphSentencePiece
from keras_bert3.serving.graph_word_piece import GraphWordPiece
from keras_bert3.tasks.masked_lm import MaskedLMPreprocessor
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

GRAPH_TOKENIZERS: dict[type, Callable] = {
    SentencePieceTokenizer: GraphSentencePiece,
    WordPieceTokenizer: GraphWordPiece,
}
"""Tokenizers that have a graph; the others' tasks are served by their tokens alone."""
PREPROCESSORS: tuple[type, ...] = (Preprocessor, MaskedLMPreprocessor)
"""Preprocessors whose packing is `graph_packing.pack`."""


def has_graph(preprocessor) -> bool:
    """Whether strings can be prepared inside a graph exactly as this preprocessor does."""
    return (
        type(preprocessor) in PREPROCESSORS
        and type(getattr(preprocessor, "tokenizer", None)) in GRAPH_TOKENIZERS
    )


class GraphText:
    """A task's preprocessor inside a graph.

    Rows are as long as the longest of a batch, whatever `sequence_length` pads to in Python:
    padding has no part in any result.

    Args:
        preprocessor: one that `has_graph`.
        max_sequence_length: what the network can read at most, or None.
    """

    def __init__(self, preprocessor, max_sequence_length: int | None) -> None:
        tokenizer = preprocessor.tokenizer
        self.tokenize = GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)
        self.special = {n: getattr(tokenizer, n) for n in ("cls_id", "sep_id", "pad_id")}
        limits = (
            preprocessor.sequence_length,
            preprocessor.max_sequence_length,
            max_sequence_length,
        )
        self.limit = min((limit for limit in limits if limit is not None), default=None)
        self.mask_id = getattr(tokenizer, "mask_id", None)
        self.mask = None if self.mask_id is None else tokenizer.id_to_token(self.mask_id)

    def __call__(self, texts, second_texts=None) -> GraphInputs:
        """Prepare texts `[b]`, or pairs."""
        if second_texts is None:
            return pack(self.tokenize(texts), None, self.limit, **self.special)
        texts, second_texts = of_equal_length(texts, second_texts)
        second = self.tokenize(second_texts)
        return pack(self.tokenize(texts), second, self.limit, **self.special)

    def with_masks(self, texts) -> GraphInputs:
        """Prepare texts in which "[MASK]" stands for the mask token; see `MaskedLM.fill_mask`.

        A text without one, or that loses one by truncation, ends the call with InvalidArgument.
        """
        tf = tensorflow()

        count = tf.shape(texts)[0]
        split = tf.raw_ops.StringSplitV2(input=texts, sep=self.mask)
        owner = split.indices[:, 0]
        pieces = tf.math.unsorted_segment_sum(tf.ones_like(owner), owner, count)
        ids = self.tokenize(split.values)
        masks = tf.fill([tf.size(split.values), 1], self.mask_id)
        ids = tf.concat([ids, tf.RaggedTensor.from_tensor(masks)], 1)
        splits = tf.gather(ids.row_splits, tf.pad(tf.cumsum(pieces), [[1, 0]]))
        rows = tf.RaggedTensor.from_row_splits(ids.values, splits, validate=False)
        inputs = pack(rows[:, :-1], None, self.limit, **self.special)
        found = tf.reduce_sum(tf.cast(inputs.token_ids == self.mask_id, tf.int64), 1)
        is_whole = (found == pieces - 1) & (found > 0)
        message = (
            f"Expected at least one {self.mask} in each text, all in the first {self.limit} tokens"
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_whole), [message])]):
            return GraphInputs(*map(tf.identity, inputs))
