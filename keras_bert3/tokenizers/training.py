"""Learning a WordPiece vocabulary from text."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert3.tokenizers.vocabulary import CONTINUATION, SPECIAL_TOKENS, UNKNOWN
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

WORDS_PER_LINE = 10_000


def train_word_piece(
    documents: Iterable[str],
    vocabulary_size: int,
    lowercase: bool = True,
    min_frequency: int = 2,
    progress: bool = False,
    limit_alphabet: int = 1000,
) -> list[str]:
    """Learn a vocabulary of word pieces; the same text gives the same list, always.

    Words are counted after the basic tokenization of `WordPieceTokenizer`. The vocabulary starts
    with the special tokens and the alphabet: every character by itself, and with "##" where it
    occurs in a longer word. Then the most frequent pair of neighbouring pieces becomes a piece, and
    again, until the vocabulary is full. Google never published the trainer of BERT's vocabularies;
    this is the byte-pair rule (Sennrich et al. 2016, algorithm 1) with WordPiece spelling.

    The Rust trainer numbers characters in the order of a hash table that changes from process to
    process, and settles ties by these numbers; here it is given them in a fixed order instead.

    Args:
        documents: texts; read once, so a generator will do. Only the distinct words are kept in
            memory.
        vocabulary_size: tokens at most; fewer when the text has no more frequent pairs.
        lowercase: train an uncased vocabulary.
        min_frequency: occurrences below which a pair is never merged.
        progress: show a progress bar while merging.
        limit_alphabet: characters at most, the most frequent ones (ties: lower code point first).
            Words with any other character are left out: they will be [UNK].

    Returns:
        The tokens: [PAD], [UNK], [CLS], [SEP], [MASK], the alphabet, then the merged pieces in
        order of their making.

    Raises:
        ValueError: when there is no word to learn from, or `vocabulary_size` has no room for the
            alphabet.

    Example:
    ```python
    train_word_piece(["low lower lowest"] * 3, vocabulary_size=30)[-1]  # "lowest"
    ```
    """
    words = _count_words(documents, lowercase)
    words, fixed = _fix_alphabet(words, limit_alphabet)
    if len(fixed) > vocabulary_size:
        raise ValueError(
            f"Expected a vocabulary_size of at least {len(fixed)} (special tokens and alphabet). "
            f"Received: {vocabulary_size}"
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        show_progress=progress,
        special_tokens=fixed,
        continuing_subword_prefix=CONTINUATION,
    )
    learner = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    learner.train_from_iterator(_repeated(words), trainer)
    learned = learner.get_vocab(with_added_tokens=False)
    return sorted(learned, key=learned.__getitem__)


def _count_words(documents: Iterable[str], lowercase: bool) -> Counter[str]:
    """Count the words of basic tokenization; each distinct stretch of text is cut up once."""
    if isinstance(documents, str):
        raise ValueError("Expected an iterable of texts. Received: a single str")
    stretches: Counter[str] = Counter()
    for document in documents:
        if not isinstance(document, str):
            raise ValueError(f"Expected documents as str. Received: {document!r}")
        stretches.update(document.replace("\n", " ").split(" "))
    splitter = WordPieceTokenizer(SPECIAL_TOKENS, lowercase=lowercase)
    words: Counter[str] = Counter()
    for stretch, count in stretches.items():
        for word in splitter.split_words(stretch):
            if len(word) <= splitter.max_word_length:
                words[word] += count
    if not words:
        raise ValueError("Expected documents with at least one word. Received: none")
    return words


def _fix_alphabet(words: Counter[str], limit: int) -> tuple[Counter[str], list[str]]:
    """Return the words over the most frequent characters, and the tokens the training starts from.

    The tokens are the special ones, the characters in order of code point, and these again with
    "##" where they occur in words of two characters or more: enough to spell each of the words.
    """
    frequency: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            frequency[character] += count
    alphabet = set(sorted(frequency, key=lambda c: (-frequency[c], c))[:limit])
    spelled = Counter({word: n for word, n in words.items() if alphabet.issuperset(word)})
    inner = {character for word in spelled if len(word) > 1 for character in word}
    tokens = [*SPECIAL_TOKENS, *sorted(alphabet), *(CONTINUATION + c for c in sorted(inner))]
    return spelled, tokens


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Yield lines in which each word occurs as often as counted."""
    for word in sorted(words):
        full, rest = divmod(words[word], WORDS_PER_LINE)
        for _ in range(full):
            yield f"{word} " * WORDS_PER_LINE
        yield f"{word} " * rest
