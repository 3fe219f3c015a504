"""The pre-training instances of the published script, one for one.

For comparisons with google-research/bert create_pretraining_data.py: the same documents, settings
and `random.Random` give the same instances in the same order, masks included. All instances are
held in memory, as there. Training uses `pretraining_examples` and `pretraining_batches`, which are
built on the same rules.
"""

import itertools
import random
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert3.objectives.masking import mask_tokens
from keras_bert3.objectives.next_sentence import SegmentPair, draw_any_document, sentence_pairs


class PublishedInstance(NamedTuple):
    """One instance of the published script.

    Attributes:
        token_ids: ids of [CLS] A [SEP] B [SEP] after masking, without padding.
        segment_ids: 0 for [CLS], A and its [SEP]; 1 for B and its [SEP].
        mask_positions: predicted positions, ascending.
        labels: the ids at these positions before masking.
        is_random: 0 (IS_NEXT) or 1 (IS_RANDOM).
    """

    token_ids: list[int]
    segment_ids: list[int]
    mask_positions: list[int]
    labels: list[int]
    is_random: int


def published_instances(
    documents: Sequence[Sequence[Sequence[int]]],
    rng: random.Random,
    *,
    cls_id: int,
    sep_id: int,
    mask_id: int,
    is_continuation: np.ndarray,
    sequence_length: int = 128,
    num_duplicates: int = 10,
    short_probability: float = 0.1,
    rate: float = 0.15,
    max_predictions: int = 20,
    whole_words: bool = False,
) -> list[PublishedInstance]:
    """Build all instances of a corpus with the draws of the published script, in their order.

    Args:
        documents: ids of each sentence of each document. Empty sentences and documents are dropped.
        rng: the generator; the published script uses `random.Random(12345)`.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        mask_id: id of [MASK].
        is_continuation: bool [V], ids whose token begins with "##"; V is the vocabulary size.
        sequence_length: most tokens of an instance (default: the script's flag, 128).
        num_duplicates: walks over the documents, each with other pairs and masks (`dupe_factor`).
        short_probability: chance of a shorter target length, drawn once a document and walk.
        rate: share of the tokens to predict.
        max_predictions: most tokens to predict.
        whole_words: mask whole words.

    Returns:
        The instances, shuffled.

    Raises:
        ValueError: no document holds a token, or the length has no room for two tokens.

    Warns:
        UserWarning: every document has one sentence, so every pair is random.

    Example:
        >>> made = published_instances([[[7, 8], [9]], [[8, 8]]], random.Random(0), cls_id=2,
        ...     sep_id=3, mask_id=4, is_continuation=np.zeros(10, bool), num_duplicates=1)
        >>> len(made)
        3
    """
    tokens, sentence_offsets, document_offsets = _flatten(documents)
    order = list(range(len(document_offsets) - 1))
    rng.shuffle(order)
    is_special = np.zeros(len(is_continuation), bool)
    is_special[[cls_id, sep_id]] = True
    instances = []
    for _, current in itertools.product(range(num_duplicates), range(len(order))):
        pairs = sentence_pairs(
            sentence_offsets,
            document_offsets,
            order,
            current,
            sequence_length - 3,
            short_probability,
            rng,
            draw_any_document,
        )
        for pair in pairs:
            token_ids, segment_ids = _join(tokens, pair, cls_id, sep_id)
            masked = mask_tokens(
                token_ids,
                is_special,
                is_continuation,
                mask_id,
                len(is_continuation),
                max_predictions,
                rate,
                whole_words,
                rng,
            )
            instances.append(
                PublishedInstance(
                    masked.token_ids,
                    segment_ids,
                    masked.mask_positions,
                    masked.labels,
                    pair.is_random,
                )
            )
    rng.shuffle(instances)
    return instances


def _flatten(documents) -> tuple[list[int], list[int], list[int]]:
    kept = [[list(sentence) for sentence in document if len(sentence)] for document in documents]
    kept = [document for document in kept if document]
    if not kept:
        raise ValueError("Expected documents that hold a token. Received: none.")
    if all(len(document) == 1 for document in kept):
        warnings.warn(
            "every document has 1 sentence, so every second segment is random and labelled 1; "
            "is there a blank line after every sentence?",
            stacklevel=3,
        )
    sentences = [sentence for document in kept for sentence in document]
    tokens = [token for sentence in sentences for token in sentence]
    return tokens, _offsets(sentences), _offsets(kept)


def _offsets(items: Sequence[Sequence]) -> list[int]:
    return [0, *itertools.accumulate(len(item) for item in items)]


def _join(
    tokens: list[int], pair: SegmentPair, cls_id: int, sep_id: int
) -> tuple[list[int], list[int]]:
    first = tokens[pair.first_begin : pair.first_begin + pair.first_length]
    second = tokens[pair.second_begin : pair.second_begin + pair.second_length]
    token_ids = [cls_id, *first, sep_id, *second, sep_id]
    return token_ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)
