"""Learning byte pairs of bytes from text."""

import json
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS
from keras_bert3.tokenizers.byte_level_byte_pair import FIRST_TOKENS, ByteLevelBytePairTokenizer
from keras_bert3.tokenizers.vocabulary import MASK, checked_text


def train_byte_level_byte_pair(
    documents: Iterable[str],
    vocabulary_size: int,
    min_frequency: int = 2,
    progress: bool = False,
) -> ByteLevelBytePairTokenizer:
    """Learn merges from text; the same text gives the same tokenizer, always.

    The most frequent pair of neighbouring pieces within words is joined, and again, until the
    vocabulary is full (Sennrich et al. 2016, algorithm 1, on bytes as in Radford et al. 2019,
    section 2.2). Ids are laid out as DeBERTa v1's: [PAD] 0, [CLS] 1, [SEP] 2, [UNK] 3, then the 256
    bytes and the merged pieces in order of their making, then [MASK].

    Args:
        documents: texts; read once.
        vocabulary_size: tokens at most, special ones and the 256 bytes included (50265 as
            released); fewer when no pair is frequent enough.
        min_frequency: occurrences below which a pair is never merged.
        progress: show a progress bar while merging.

    Raises:
        ValueError: when `vocabulary_size` has no room for the special tokens and bytes.

    Example:
    ```python
    train_byte_level_byte_pair(["low lower lowest"] * 9, 280).tokenize("low lowest")
    ```
    """
    fixed = [*FIRST_TOKENS, *BYTE_CHARACTERS]
    if vocabulary_size <= len(fixed):
        raise ValueError(
            f"Expected a vocabulary_size of at least {len(fixed) + 1} (special tokens and bytes). "
            f"Received: {vocabulary_size}"
        )
    if isinstance(documents, str):
        raise ValueError("Expected an iterable of texts. Received: a single str")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - 1,
        min_frequency=min_frequency,
        show_progress=progress,
        # In a fixed order: the trainer settles ties by numbers it would give at random.
        special_tokens=fixed,
    )
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(_checked(documents), trainer)
    learned = json.loads(learner.to_str())["model"]
    merges = [(left, right) for left, right in learned["merges"]]
    tokens = sorted(learned["vocab"], key=learned["vocab"].__getitem__)
    return ByteLevelBytePairTokenizer([*tokens, MASK], merges)


def _checked(documents: Iterable[str]) -> Iterator[str]:
    for document in documents:
        yield checked_text(document)
