"""From strings to a network's inputs inside a graph: what a task's preprocessor does in Python."""

from collections.abc import Callable

from keras_bert3.serving.graph_byte_level import GraphByteLevel
from keras_bert3.serving.graph_gpt_byte_pair import GraphGPTBytePair
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_masked_text import bare_ids, ids_of_parts
from keras_bert3.serving.graph_packing import (
    GraphInputs,
    frame_halves,
    of_equal_length,
    pack,
    plain,
)
from keras_bert3.serving.graph_pieces import GraphTokenizer
from keras_bert3.serving.graph_sentence_piece import GraphSentencePiece
from keras_bert3.serving.graph_word_piece import GraphWordPiece
from keras_bert3.tasks.causal_lm import CausalLMPreprocessor
from keras_bert3.tasks.gpt_preprocessors import (
    GPTMultipleChoicePreprocessor,
    GPTPreprocessor,
    GPTSimilarityPreprocessor,
)
from keras_bert3.tasks.masked_lm import MaskedLMPreprocessor
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tokenizers.byte_level_byte_pair import ByteLevelBytePairTokenizer
from keras_bert3.tokenizers.byte_pair import BytePairTokenizer
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

GRAPH_TOKENIZERS: dict[type, type] = {
    ByteLevelBytePairTokenizer: GraphByteLevel,
    BytePairTokenizer: GraphGPTBytePair,
    SentencePieceTokenizer: GraphSentencePiece,
    WordPieceTokenizer: GraphWordPiece,
}
"""Tokenizers that have a graph; the others' tasks are served by their tokens alone."""


def has_graph(preprocessor) -> bool:
    """Whether strings can be prepared inside a graph exactly as this preprocessor does."""
    return type(preprocessor) in PREPROCESSORS and tokenizer_has_graph(preprocessor.tokenizer)


def tokenizer_has_graph(tokenizer) -> bool:
    """Whether a graph gives the ids of this tokenizer for every text."""
    # ftfy and spaCy, which cut words as GPT-1's paper does, are no graphs; nor are added tokens
    is_spacy = getattr(tokenizer, "text_standardization", None) == "spacy"
    has_added = bool(getattr(tokenizer, "added_tokens", ()))
    return type(tokenizer) in GRAPH_TOKENIZERS and not is_spacy and not has_added


def pieces_have_graph(tokenizer) -> bool:
    """Whether the graph also tells where in a text each id comes from."""
    is_known = tokenizer_has_graph(tokenizer)
    return is_known and issubclass(GRAPH_TOKENIZERS[type(tokenizer)], GraphTokenizer)


def graph_text(preprocessor, max_sequence_length: int | None):
    """Make the graph of a preprocessor that `has_graph`."""
    return PREPROCESSORS[type(preprocessor)](preprocessor, max_sequence_length)


class GraphPreprocessor:
    """A task's preprocessor inside a graph; a subclass says how rows are framed.

    Rows are about as long as the longest of a batch, whatever `sequence_length` pads to in Python:
    padding has no part in any result.

    Args:
        preprocessor: one that `has_graph`.
        max_sequence_length: what the network can read at most, or None.
    """

    def __init__(self, preprocessor, max_sequence_length: int | None) -> None:
        tokenizer = preprocessor.tokenizer
        self.tokenize = GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)
        self.pad_id = tokenizer.pad_id
        self.limit = _limit(preprocessor, max_sequence_length)


class GraphText(GraphPreprocessor):
    """A `Preprocessor` or `MaskedLMPreprocessor` inside a graph: BERT's rows."""

    def __init__(self, preprocessor, max_sequence_length: int | None) -> None:
        super().__init__(preprocessor, max_sequence_length)
        tokenizer = preprocessor.tokenizer
        self.special = {n: getattr(tokenizer, n) for n in ("cls_id", "sep_id", "pad_id")}
        self.mask_id = getattr(tokenizer, "mask_id", None)
        self.mask = None if self.mask_id is None else tokenizer.id_to_token(self.mask_id)
        self.bare = None if self.mask_id is None else bare_ids(tokenizer)

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
        ids = ids_of_parts(split.values, owner, self.tokenize, self.bare)
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


class GraphGPTText(GraphPreprocessor):
    """A `GPTPreprocessor` inside a graph: rows between GPT-1's start and classify tokens."""

    def __init__(self, preprocessor, max_sequence_length: int | None) -> None:
        super().__init__(preprocessor, max_sequence_length)
        self.special = tuple(preprocessor.special)
        self.limit = min(preprocessor.longest, max_sequence_length or preprocessor.longest)

    def __call__(self, texts, second_texts=None) -> GraphInputs:
        """Frame texts `[b]`, or pairs whose order counts."""
        second = None
        if second_texts is not None:
            texts, second_texts = of_equal_length(texts, second_texts)
            second = self.tokenize(second_texts)
        return frame_halves(self.tokenize(texts), second, self.limit, self.special, self.pad_id)

    def both_ways(self, texts, second_texts) -> GraphInputs:
        """Frame pairs without an order, in both of them: `[b, 2, q]`."""
        tf = tensorflow()

        pairs = zip(self(texts, second_texts), self(second_texts, texts), strict=True)
        return GraphInputs(*(tf.stack(pair, 1) for pair in pairs))


class GraphPlainText(GraphPreprocessor):
    """A `CausalLMPreprocessor` inside a graph: texts as they are."""

    def __call__(self, texts, second_texts=None) -> GraphInputs:
        """Pad texts `[b]`; one without a token ends the call with InvalidArgument."""
        tf = tensorflow()

        inputs = plain(self.tokenize(texts), self.limit, self.pad_id)
        has_tokens = tf.reduce_all(inputs.lengths > 0)
        message = "Expected at least one token in each text"
        with tf.control_dependencies([tf.debugging.Assert(has_tokens, [message])]):
            return GraphInputs(*map(tf.identity, inputs))


def _limit(preprocessor, max_sequence_length: int | None) -> int | None:
    """Tokens of a row at most."""
    limits = preprocessor.sequence_length, preprocessor.max_sequence_length, max_sequence_length
    return min((limit for limit in limits if limit is not None), default=None)


PREPROCESSORS: dict[type, Callable] = {
    CausalLMPreprocessor: GraphPlainText,
    GPTPreprocessor: GraphGPTText,
    GPTMultipleChoicePreprocessor: GraphGPTText,
    GPTSimilarityPreprocessor: GraphGPTText,
    MaskedLMPreprocessor: GraphText,
    Preprocessor: GraphText,
}
"""Preprocessors that have a graph."""
