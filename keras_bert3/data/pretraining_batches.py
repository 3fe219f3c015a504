"""Batches for pre-training: a pure function of the settings and of the step.

`batches[step]` can be asked for in any order, by any process, after any restart, and gives the same
arrays. The order of an epoch is a permutation named by `(seed, epoch)`, and the mask of a sample by
`(seed, number of the sample since the start)`, so each epoch masks anew (RoBERTa section 4.1).
"""

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_bert3.data.assembly import assemble
from keras_bert3.data.tokenized_corpus import TokenizedCorpus, vocabulary_hash
from keras_bert3.data.tokenizer_protocols import PretrainingTokenizer
from keras_bert3.objectives.counter_random import random_permutation
from keras_bert3.objectives.masking import mask_batch

Arrays = dict[str, np.ndarray]
Batch = tuple[Arrays, Arrays, Arrays]
_ORDER_STREAM = 2


class _BatchMaker:
    """What training and evaluation batches share: from rows of the example table to arrays."""

    def __init__(
        self,
        corpus: TokenizedCorpus,
        examples: np.ndarray,
        tokenizer: PretrainingTokenizer,
        sequence_length: int,
        batch_size: int,
        max_predictions: int | None = None,
        seed: int = 0,
        whole_words: bool = False,
        rate: float = 0.15,
        probabilities: tuple[float, float, float] = (0.8, 0.1, 0.1),
        exclude_special_replacements: bool = False,
        longest_group: int = 1,
    ):
        self.corpus = corpus
        self.examples = examples
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.batch_size = batch_size
        self.seed = seed
        if max_predictions is None:
            max_predictions = math.ceil(rate * sequence_length)
        self.max_predictions = max_predictions
        self._mask_options: dict[str, Any] = {
            "whole_words": whole_words,
            "rate": rate,
            "probabilities": probabilities,
            "exclude_special_replacements": exclude_special_replacements,
            "longest_group": longest_group,
        }
        _check_examples(corpus, examples, tokenizer)
        self.next_sentence = bool(examples[0, 3] > 0)
        _check_length(examples, sequence_length, 3 if self.next_sentence else 2)
        if batch_size < 1:
            raise ValueError(f"Expected batch_size >= 1. Received: {batch_size}.")
        self._is_special = np.zeros(tokenizer.vocabulary_size, bool)
        self._is_special[list(tokenizer.special_ids)] = True
        self._is_continuation = np.asarray(tokenizer.is_continuation, bool)
        # A trial row: what mask_batch refuses is refused here, not at the first step.
        self._make(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.float32))

    def _make(self, rows: np.ndarray, mask_names: np.ndarray, weights: np.ndarray) -> Batch:
        table = self.examples[rows]
        token_ids, segment_ids, padding_mask = assemble(
            self.corpus.tokens, table, self.sequence_length, self.tokenizer
        )
        masked = mask_batch(
            token_ids,
            padding_mask,
            mask_names,
            seed=self.seed,
            is_special=self._is_special,
            is_continuation=self._is_continuation,
            mask_id=self.tokenizer.mask_id,
            max_predictions=self.max_predictions,
            **self._mask_options,
        )
        inputs = {
            "token_ids": masked.token_ids,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask,
            "mask_positions": masked.mask_positions,
        }
        labels = {"masked_lm": masked.labels}
        sample_weight = {"masked_lm": masked.weights * weights[:, None]}
        if self.next_sentence:
            labels["next_sentence"] = table[:, 4].astype(np.int32)
            sample_weight["next_sentence"] = weights
        return inputs, labels, sample_weight


class PretrainingBatches(_BatchMaker):
    """Endless training batches with random access.

    Sample g (counted from 0 over all steps) is example `order(g // n)[g % n]` of n: epochs follow
    each other without a gap, so every n samples show each example once, whatever the batch size.
    Shard k of m gets rows `k * batch_size / m` to `(k + 1) * batch_size / m` of the global batch.

    Args:
        corpus: the tokenised corpus.
        examples: int [n, 5] from `build_examples`; without second segments there is no
            next-sentence label.
        tokenizer: the tokenizer of the corpus; its ids are used.
        sequence_length: length t of a row; at least that of the examples.
        batch_size: rows of a step over all shards.
        max_predictions: prediction slots p; default: `rate` of the length, rounded up (20 of 128).
        seed: any integer.
        whole_words: mask the pieces of a word together.
        rate: share of the tokens to predict.
        probabilities: shown as [MASK], as itself, as a random token, see `mask_batch`.
        exclude_special_replacements: draw random tokens from those that are not special.
        longest_group: mask up to so many words in a row together, see `mask_batch`.
        num_shards: processes that share a step; it divides `batch_size`.
        shard: which of them this one is.

    Raises:
        ValueError: the tokenizer is not the corpus's, the table is not one of examples of this
            corpus, a sequence is longer than `sequence_length`, or shards do not divide a batch.

    Example:
        >>> batches = PretrainingBatches(corpus, examples, tokenizer, 128, 64)  # doctest: +SKIP
        >>> inputs, labels, sample_weight = batches[1000]  # doctest: +SKIP
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        examples: np.ndarray,
        tokenizer: PretrainingTokenizer,
        sequence_length: int,
        batch_size: int,
        max_predictions: int | None = None,
        seed: int = 0,
        whole_words: bool = False,
        rate: float = 0.15,
        probabilities: tuple[float, float, float] = (0.8, 0.1, 0.1),
        exclude_special_replacements: bool = False,
        longest_group: int = 1,
        num_shards: int = 1,
        shard: int = 0,
    ):
        super().__init__(
            corpus,
            examples,
            tokenizer,
            sequence_length,
            batch_size,
            max_predictions,
            seed,
            whole_words,
            rate,
            probabilities,
            exclude_special_replacements,
            longest_group,
        )
        _check_shards(batch_size, num_shards, shard)
        self.num_shards = num_shards
        self.shard = shard
        self._orders: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        """Steps of an epoch; the last of them may reach into the next epoch."""
        return -(-len(self.examples) // self.batch_size)

    def __getitem__(self, step: int) -> Batch:
        """Give the batch of a step: inputs, labels and sample weights.

        Args:
            step: any number from 0.

        Returns:
            Three dictionaries: inputs `token_ids`, `segment_ids` int32 [b, t], `padding_mask` bool
            [b, t], `mask_positions` int32 [b, p]; labels `masked_lm` int32 [b, p] and, for pairs,
            `next_sentence` int32 [b]; float32 weights of the labels' shapes.

        Raises:
            IndexError: the step is negative.
        """
        if step < 0:
            raise IndexError(f"Expected a step from 0. Received: {step}.")
        local_size = self.batch_size // self.num_shards
        first = step * self.batch_size + self.shard * local_size
        samples = np.arange(first, first + local_size)
        return self._make(self._rows(samples), samples, np.ones(local_size, np.float32))

    def of_shard(self, num_shards: int, shard: int) -> "PretrainingBatches":
        """Return the part of each batch that one of several processes trains on, reading no more.

        Raises:
            ValueError: if shards do not divide a batch.
        """
        _check_shards(self.batch_size, num_shards, shard)
        part = copy.copy(self)
        part.num_shards, part.shard = num_shards, shard
        return part

    def examples_of(self, step: int) -> np.ndarray:
        """Numbers of the examples, rows of the table, in the batch of a step."""
        first = step * self.batch_size
        return self._rows(np.arange(first, first + self.batch_size))

    def forever(self, start_step: int = 0) -> Iterator[Batch]:
        """Yield the batches from a step on, without end."""
        step = start_step
        while True:
            yield self[step]
            step += 1

    __iter__ = forever

    def _rows(self, samples: np.ndarray) -> np.ndarray:
        epochs, places = np.divmod(samples, len(self.examples))
        rows = np.empty_like(samples)
        for epoch in range(epochs[0], epochs[-1] + 1):
            inside = epochs == epoch
            rows[inside] = self._order(epoch)[places[inside]]
        return rows

    def _order(self, epoch: int) -> np.ndarray:
        if epoch not in self._orders:
            order = random_permutation(len(self.examples), self.seed, _ORDER_STREAM, epoch)
            # Two are kept, for a batch that reaches over the end of an epoch.
            self._orders = {**dict(list(self._orders.items())[-1:]), epoch: order}
        return self._orders[epoch]


class EvaluationBatches(_BatchMaker):
    """Every example once, in order, always with the same masks.

    The last batch is filled up with rows of weight 0, so that all batches have one shape.

    Args:
        corpus: the tokenised corpus.
        examples: int [n, 5] from `build_examples`.
        tokenizer: the tokenizer of the corpus.
        sequence_length: length t of a row.
        batch_size: rows of a batch.
        max_predictions: prediction slots p; default: `rate` of the length, rounded up.
        seed: any integer; the mask of example i is named by `(seed, i)`.
        whole_words: mask the pieces of a word together.
        rate: share of the tokens to predict.
        probabilities: shown as [MASK], as itself, as a random token, see `mask_batch`.
        exclude_special_replacements: draw random tokens from those that are not special.
        longest_group: mask up to so many words in a row together, see `mask_batch`.

    Raises:
        ValueError: as for `PretrainingBatches`.
    """

    def __len__(self) -> int:
        """Batches of the whole table."""
        return -(-len(self.examples) // self.batch_size)

    def __getitem__(self, index: int) -> Batch:
        """Give a batch, as `PretrainingBatches` does; weights are 0 in rows past the end."""
        if not 0 <= index < len(self):
            raise IndexError(f"Expected a batch from 0 to {len(self) - 1}. Received: {index}.")
        wanted = np.arange(index * self.batch_size, (index + 1) * self.batch_size)
        inside = wanted < len(self.examples)
        rows = np.where(inside, wanted, 0)
        return self._make(rows, rows, inside.astype(np.float32))

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches once."""
        return (self[index] for index in range(len(self)))


def _check_shards(batch_size: int, num_shards: int, shard: int) -> None:
    if num_shards < 1 or batch_size % num_shards or not 0 <= shard < num_shards:
        raise ValueError(
            "Expected num_shards that divide batch_size and 0 <= shard < num_shards. "
            f"Received: batch_size={batch_size}, num_shards={num_shards}, shard={shard}."
        )


def _check_examples(
    corpus: TokenizedCorpus, examples: np.ndarray, tokenizer: PretrainingTokenizer
) -> None:
    if corpus.vocabulary_sha256 != vocabulary_hash(tokenizer.vocabulary):
        raise ValueError(
            f"Expected the vocabulary of the corpus, of {corpus.vocabulary_size} tokens. "
            f"Received: another, of {tokenizer.vocabulary_size} tokens."
        )
    if examples.ndim != 2 or examples.shape[1] != 5 or not len(examples):
        raise ValueError(f"Expected examples of shape [n, 5], n > 0. Received: {examples.shape}.")
    ends = examples[:, 0] + examples[:, 1], examples[:, 2] + examples[:, 3]
    if max(ends[0].max(), ends[1].max()) > len(corpus.tokens):
        raise ValueError(
            f"Expected examples of this corpus of {len(corpus.tokens)} tokens. "
            "Received: examples that reach beyond them."
        )


def _check_length(examples: np.ndarray, sequence_length: int, num_special: int) -> None:
    longest = int((examples[:, 1] + examples[:, 3]).max()) + num_special
    if longest > sequence_length:
        raise ValueError(
            f"Expected examples of at most sequence_length={sequence_length} tokens. "
            f"Received: one of {longest}."
        )
