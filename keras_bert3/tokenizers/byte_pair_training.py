"""Learning byte pairs from text."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert3.tokenizers import gpt_text
from keras_bert3.tokenizers.byte_pair import END, UNKNOWN, BytePairTokenizer

WORDS_PER_LINE = 10_000


def train_byte_pair(
    documents: Iterable[str],
    num_merges: int = 40_000,
    text_standardization: str = "spacy",
    min_frequency: int = 2,
    progress: bool = False,
) -> BytePairTokenizer:
    """Learn merges from text; the same text gives the same tokenizer, always.

    The most frequent pair of neighbouring pieces is joined, and again, `num_merges` times (Sennrich
    et al. 2016, algorithm 1; Radford et al. 2018, section 4.1: 40,000). Ids are laid out as in the
    released vocabulary: <unk>, characters, characters that end a word, merges, the line end.

    Args:
        documents: texts; read once. Only the distinct words are kept in memory.
        num_merges: merges at most; fewer when no pair is frequent enough.
        text_standardization: how words are cut, see `gpt_text`.
        min_frequency: occurrences below which a pair is never merged.
        progress: show a progress bar while merging.

    Raises:
        ValueError: when there is no word to learn from.
        ImportError: as `BytePairTokenizer`.
    """
    words = _count_words(documents, text_standardization)
    alphabet = _alphabet(words)
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + num_merges,
        min_frequency=min_frequency,
        show_progress=progress,
        # In a fixed order: the trainer settles ties by numbers it would give at random.
        special_tokens=alphabet,
        end_of_word_suffix=END,
    )
    learner = Tokenizer(models.BPE(unk_token=UNKNOWN, end_of_word_suffix=END))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    learner.train_from_iterator(_repeated(words), trainer)
    merges = [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]
    learned = dict.fromkeys("".join(pair) for pair in merges)
    vocabulary = dict.fromkeys([*alphabet, *learned, "\n" + END])
    return BytePairTokenizer(list(vocabulary), merges, text_standardization)


def _count_words(documents: Iterable[str], text_standardization: str) -> Counter[str]:
    if isinstance(documents, str):
        raise ValueError("Expected an iterable of texts. Received: a single str")
    split, words = gpt_text.splitter(text_standardization), Counter()
    for document in documents:
        words.update(word for word in split(document) if word.split() == [word])
    if not words:
        raise ValueError("Expected documents with at least one word. Received: none")
    return words


def _alphabet(words: Counter[str]) -> list[str]:
    """<unk> and every character by itself and ending a word, the most frequent first."""
    frequency: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            frequency[character] += count
    characters = sorted(frequency, key=lambda c: (-frequency[c], c))
    return [UNKNOWN, *characters, *(character + END for character in characters)]


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Yield lines in which each word occurs as often as counted."""
    for word in sorted(words):
        full, rest = divmod(words[word], WORDS_PER_LINE)
        for _ in range(full):
            yield f"{word} " * WORDS_PER_LINE
        yield f"{word} " * rest
