"""Windows of running text for language models: a pure function of the seed and of the step."""

import copy
from collections.abc import Iterator

import numpy as np

from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.objectives.counter_random import integers_below, random_bits

Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]
_WINDOW_STREAM = 5


class _Windows:
    """Chosen documents of a corpus as one stream of tokens, cut into windows."""

    def __init__(
        self, corpus: TokenizedCorpus, documents: np.ndarray, sequence_length: int, batch_size: int
    ):
        if sequence_length < 1 or batch_size < 1:
            raise ValueError(
                "Expected sequence_length and batch_size of at least 1. Received: "
                f"sequence_length={sequence_length}, batch_size={batch_size}"
            )
        self.corpus = corpus
        self.sequence_length = sequence_length
        self.batch_size = batch_size
        offsets = corpus.document_offsets
        self._begins = corpus.sentence_offsets[offsets[documents]]
        ends = corpus.sentence_offsets[offsets[documents + 1]]
        self._edges = np.concatenate([[0], np.cumsum(ends - self._begins)])

    @property
    def num_tokens(self) -> int:
        """Tokens of the chosen documents."""
        return int(self._edges[-1])

    def token_counts(self) -> np.ndarray:
        """How often each id stands in the chosen documents: int64 `[v]`."""
        counts = np.zeros(self.corpus.vocabulary_size, np.int64)
        lengths = np.diff(self._edges)
        for begin, length in zip(self._begins, lengths, strict=True):
            tokens = self.corpus.tokens[begin : begin + length]
            counts += np.bincount(tokens, minlength=len(counts))
        return counts

    def _tokens(self, places: np.ndarray) -> np.ndarray:
        """Read the tokens at places of the stream."""
        document = np.searchsorted(self._edges, places, side="right") - 1
        where = self._begins[document] + places - self._edges[document]
        return self.corpus.tokens[where].astype("int32")

    def _batch(self, starts: np.ndarray) -> Batch:
        """Cut windows; what reaches over the end of the stream is padding of weight 0."""
        places = starts[:, None] + np.arange(self.sequence_length + 1)
        inside = places < self.num_tokens
        tokens = self._tokens(np.minimum(places, self.num_tokens - 1)) * inside
        x = {"token_ids": tokens[:, :-1], "padding_mask": inside[:, :-1]}
        return x, tokens[:, 1:], inside[:, 1:].astype("float32")


class LanguageModelBatches(_Windows):
    """Endless batches of windows that begin anywhere.

    Radford et al. 2018, section 4.1: "randomly sampled, contiguous sequences of 512 tokens".
    Windows run on from one document into the next. Row r of step s depends on `(seed, s, r)` alone,
    so that `batches[step]` is the same in any order, in any process and after any restart.

    Args:
        corpus: the tokenised corpus.
        documents: numbers of the documents to read, in their order in the stream.
        sequence_length: tokens t of a row (512).
        batch_size: rows of a step over all shards (64).
        seed: any integer.
        num_shards: processes that share a step; it divides `batch_size`.
        shard: which of them this one is.

    Raises:
        ValueError: the documents have no window of t + 1 tokens, or shards do not divide a batch.

    Example:
        >>> batches = LanguageModelBatches(corpus, documents, 512, 64)  # doctest: +SKIP
        >>> inputs, labels, weights = batches[1000]  # doctest: +SKIP
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        documents: np.ndarray,
        sequence_length: int = 512,
        batch_size: int = 64,
        seed: int = 0,
        num_shards: int = 1,
        shard: int = 0,
    ):
        super().__init__(corpus, documents, sequence_length, batch_size)
        if self.num_tokens <= sequence_length:
            raise ValueError(
                f"Expected documents of more than sequence_length={sequence_length} tokens "
                f"together. Received: {self.num_tokens} tokens"
            )
        self.seed = seed
        self._rows = _rows_of_shard(batch_size, num_shards, shard)

    def of_shard(self, num_shards: int, shard: int) -> "LanguageModelBatches":
        """Return the part of each batch that one of several processes trains on, reading no more.

        Raises:
            ValueError: if shards do not divide a batch.
        """
        part = copy.copy(self)
        part._rows = _rows_of_shard(self.batch_size, num_shards, shard)
        return part

    def __getitem__(self, step: int) -> Batch:
        """Give the batch of a step.

        Returns:
            Inputs `token_ids` int32 and `padding_mask` bool `[b, t]`; labels int32 `[b, t]`, each
            the token that follows; weights float32 `[b, t]`, all 1.

        Raises:
            IndexError: the step is negative.
        """
        if step < 0:
            raise IndexError(f"Expected a step from 0. Received: {step}")
        bits = random_bits(self.seed, _WINDOW_STREAM, step, self._rows)
        return self._batch(integers_below(bits, self.num_tokens - self.sequence_length))

    def forever(self, start_step: int = 0) -> Iterator[Batch]:
        """Yield the batches from a step on, without end."""
        step = start_step
        while True:
            yield self[step]
            step += 1

    __iter__ = forever


def _rows_of_shard(batch_size: int, num_shards: int, shard: int) -> np.ndarray:
    if num_shards < 1 or batch_size % num_shards or not 0 <= shard < num_shards:
        raise ValueError(
            "Expected num_shards that divide batch_size and 0 <= shard < num_shards. "
            f"Received: batch_size={batch_size}, num_shards={num_shards}, shard={shard}"
        )
    return np.arange(batch_size).reshape(num_shards, -1)[shard]


class EvaluationWindows(_Windows):
    """The whole stream in windows one after another, every token but the first predicted once.

    The last batch is filled up with padding of weight 0, so that all batches have one shape.

    Args:
        corpus: the tokenised corpus.
        documents: numbers of the documents to read.
        sequence_length: tokens t of a row.
        batch_size: rows of a batch.
    """

    def __len__(self) -> int:
        """Batches of the whole stream."""
        windows = -(-max(self.num_tokens - 1, 0) // self.sequence_length)
        return -(-windows // self.batch_size)

    def __getitem__(self, index: int) -> Batch:
        """Give a batch, as `LanguageModelBatches` does."""
        if not 0 <= index < len(self):
            raise IndexError(f"Expected a batch from 0 to {len(self) - 1}. Received: {index}")
        first = index * self.batch_size
        return self._batch(np.arange(first, first + self.batch_size) * self.sequence_length)

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches once."""
        return (self[index] for index in range(len(self)))
