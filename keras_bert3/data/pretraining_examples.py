"""Examples of a tokenised corpus: which runs of tokens make a pre-training sequence.

An example is a row of five integers, the `SegmentPair` of `objectives/next_sentence.py`. The table
is made once and lies on disk; masks are made anew in every epoch, by `pretraining_batches`.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_bert3.data.array_files import ArrayWriter, whole_path
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.objectives.counter_random import random_bits
from keras_bert3.objectives.next_sentence import SegmentPair, sentence_pairs, single_segments

NUM_COLUMNS = len(SegmentPair._fields)
_WRITTEN_TOGETHER = 16384
_EXAMPLE_STREAM = 1


def build_examples(
    corpus: TokenizedCorpus,
    documents: Sequence[int] | np.ndarray,
    path: str | Path,
    sequence_length: int,
    num_duplicates: int = 10,
    short_probability: float = 0.1,
    seed: int = 0,
    next_sentence: bool = True,
) -> np.ndarray:
    """Write the examples of some documents of a corpus to an `.npy` file.

    The corpus is walked `num_duplicates` times; each walk cuts the documents at other places and
    draws other random segments. So expect

        num_examples = about num_duplicates * chunks,    chunks >= tokens / (sequence_length - 3),

    with a chunk more for every document that is no whole number of them, and for pairs up to half
    as many again, because a random second segment leaves the rest of its chunk to the next pair.
    Ten walks make a table of ten to fifteen times the corpus, and more where documents are shorter
    than a sequence. Each walk of each document is seeded with `(seed, walk, document)`: its
    examples depend on nothing else but the list of documents to draw random segments from.

    Args:
        corpus: the tokenised corpus.
        documents: numbers of the documents to use, e.g. `range(corpus.num_documents)` or one part
            of `corpus.split()`; random segments come from these alone.
        path: the file to make; it appears when all is written.
        sequence_length: most tokens of a sequence, special tokens included.
        num_duplicates: walks over the documents (default: the published script's flag, 10).
        short_probability: chance that a document of a walk aims at a shorter random length (a run,
            without pairs); default: the published script's 0.1.
        seed: any integer.
        next_sentence: make pairs for next-sentence prediction; otherwise single runs of sentences,
            whose second segment is empty.

    Returns:
        int64 [n, 5], memory-mapped: first_begin, first_length, second_begin, second_length,
        is_random.

    Raises:
        ValueError: no document, a document twice or outside the corpus, no walk, a length with no
            room for two tokens, or pairs that could only be random: one document, or documents of
            one sentence each.

    Example:
        >>> training, held_out = corpus.split()  # doctest: +SKIP
        >>> examples = build_examples(corpus, training, "examples.npy", 128)  # doctest: +SKIP
    """
    chosen = _checked_documents(corpus, documents)
    _check_settings(sequence_length, num_duplicates, short_probability, next_sentence)
    if next_sentence:
        _check_pairs_can_follow(corpus, chosen)
    walks = _walks(
        corpus, chosen, sequence_length, num_duplicates, short_probability, seed, next_sentence
    )
    with whole_path(path) as temporary:
        with ArrayWriter(temporary, np.int64, (NUM_COLUMNS,)) as writer:
            block: list[SegmentPair] = []
            for segment in walks:
                block.append(segment)
                if len(block) == _WRITTEN_TOGETHER:
                    writer.append(block)
                    block = []
            writer.append(block)
    return np.asarray(np.load(path, mmap_mode="r"))


def _walks(
    corpus: TokenizedCorpus,
    documents: np.ndarray,
    sequence_length: int,
    num_duplicates: int,
    short_probability: float,
    seed: int,
    next_sentence: bool,
) -> Iterator[SegmentPair]:
    # Memory views give Python's integers, some times faster than numpy's scalars.
    sentences, ranges = corpus.sentence_offsets.data, corpus.document_offsets.data
    listed = documents.tolist()
    for walk in range(num_duplicates):
        seeds = random_bits(seed, _EXAMPLE_STREAM, walk, documents).tolist()
        for place, document_seed in enumerate(seeds):
            rng = random.Random(document_seed)
            if next_sentence:
                room = sequence_length - 3
                yield from sentence_pairs(
                    sentences, ranges, listed, place, room, short_probability, rng
                )
            else:
                room = sequence_length - 2
                yield from single_segments(
                    sentences, ranges, listed[place], room, short_probability, rng
                )


def _checked_documents(
    corpus: TokenizedCorpus, documents: Sequence[int] | np.ndarray
) -> np.ndarray:
    chosen = np.asarray(documents, np.int64)
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(
            f"Expected a list of document numbers. Received: shape {chosen.shape} of them."
        )
    if chosen.min() < 0 or chosen.max() >= corpus.num_documents:
        raise ValueError(
            f"Expected document numbers from 0 to {corpus.num_documents - 1}. "
            f"Received: {chosen.min()} to {chosen.max()}."
        )
    if len(np.unique(chosen)) != len(chosen):
        raise ValueError("Expected each document number once. Received: one of them twice.")
    return chosen


def _check_settings(
    sequence_length: int, num_duplicates: int, short_probability: float, next_sentence: bool
) -> None:
    shortest = 5 if next_sentence else 4
    if sequence_length < shortest:
        raise ValueError(
            f"Expected sequence_length >= {shortest}, for the special tokens and two more. "
            f"Received: {sequence_length}."
        )
    if num_duplicates < 1 or not 0 <= short_probability <= 1:
        raise ValueError(
            "Expected num_duplicates >= 1 and 0 <= short_probability <= 1. "
            f"Received: {num_duplicates} and {short_probability}."
        )


def _check_pairs_can_follow(corpus: TokenizedCorpus, documents: np.ndarray) -> None:
    if len(documents) == 1:
        raise ValueError(
            "Expected at least 2 documents with next_sentence=True, since random second segments "
            "come from another document; part the text with blank lines or use "
            "next_sentence=False. Received: 1 document."
        )
    begins, ends = corpus.document_offsets[documents], corpus.document_offsets[documents + 1]
    if (ends - begins).max() < 2:
        raise ValueError(
            "Expected a document of at least 2 sentences with next_sentence=True, since a lone "
            "sentence has no next one and every label would be random; is there a blank line "
            f"after every sentence? Received: {len(documents)} documents of 1 sentence."
        )
