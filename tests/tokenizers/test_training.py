import random
import subprocess
import sys

import pytest

from keras_bert3.tokenizers.training import train_word_piece
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Words of few, equally frequent letters: nearly every merge is a tie.
TIED = """
import itertools
from keras_bert3.tokenizers.training import train_word_piece
words = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=4)]
print(" ".join(train_word_piece([" ".join(words)] * 3, 400)))
"""


def merge_reference(counts, tokens, size, min_frequency):
    """Sennrich et al. 2016, algorithm 1; ties by the order in which the pieces were made."""
    tokens = list(tokens)
    words = {w: [w[0], *("##" + c for c in w[1:])] for w in counts}
    while len(tokens) < size:
        pairs = {}
        for word, pieces in words.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                pairs[pair] = pairs.get(pair, 0) + counts[word]
        number = {token: index for index, token in enumerate(tokens)}
        order = sorted(pairs, key=lambda p: (-pairs[p], number[p[0]], number[p[1]]))
        if not order or pairs[order[0]] < min_frequency:
            return tokens
        left, right = order[0]
        merged = left + right.removeprefix("##")
        if merged not in number:
            tokens.append(merged)
        for word, pieces in words.items():
            joined = []
            for piece in pieces:
                if joined and (joined[-1], piece) == (left, right):
                    joined[-1] = merged
                else:
                    joined.append(piece)
            words[word] = joined
    return tokens


def test_merges_are_those_of_the_published_algorithm():
    generator = random.Random(5)
    words = ["".join(generator.choices("abcd", k=generator.randint(1, 6))) for _ in range(60)]
    weights = {word: generator.randint(1, 9) for word in words}
    documents = [f"{word} " * count for word, count in weights.items()]
    alphabet = [*"abcd", "##a", "##b", "##c", "##d"]
    for size in (20, 40, 200):
        expected = merge_reference(weights, [*SPECIALS, *alphabet], size, 2)
        assert train_word_piece(documents, size) == expected


def test_two_processes_learn_the_same_list():
    runs = [
        subprocess.run([sys.executable, "-c", TIED], capture_output=True, check=True, text=True)
        for _ in range(2)
    ]
    assert len(runs[0].stdout.split()) == 400
    assert runs[0].stdout == runs[1].stdout


def test_the_order_of_documents_does_not_matter():
    documents = ["low lower lowest", "new newer newest", "wide wider widest"] * 2
    assert train_word_piece(documents, 60) == train_word_piece(documents[::-1], 60)


def test_specials_lead_and_the_vocabulary_spells_the_text():
    text = "Über die Größe: 3 + 4 = sieben!\n中国 [MASK] naïve"
    for lowercase in (True, False):
        vocabulary = train_word_piece(iter([text] * 2), 100, lowercase=lowercase)
        assert vocabulary[:5] == SPECIALS
        assert len(set(vocabulary)) == len(vocabulary) <= 100
        tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
        assert tokenizer.unknown_id not in tokenizer(text)
        assert ("Größe" in vocabulary, "große" in vocabulary) == (not lowercase, lowercase)


def test_min_frequency_bounds_the_merges():
    documents = ["ab ab ab cd cd"]
    assert "cd" in train_word_piece(documents, 50, min_frequency=2)
    vocabulary = train_word_piece(documents, 50, min_frequency=3)
    assert "ab" in vocabulary and "cd" not in vocabulary


def test_limited_alphabet_keeps_the_frequent_characters():
    vocabulary = train_word_piece(["aaa bb bb c", "xay"], 50, limit_alphabet=2)
    assert vocabulary[5:9] == ["a", "b", "##a", "##b"]
    assert not any(set(token) & set("cxy") for token in vocabulary[5:])


def test_frequent_words_are_counted_beyond_one_line():
    vocabulary = train_word_piece(["ab " * 25_003, "cd " * 25_004], 14)
    assert vocabulary[13:] == ["cd"]


@pytest.mark.parametrize("documents", [[], [""], [" \n ", "\x00"]])
def test_an_empty_corpus_is_refused(documents):
    with pytest.raises(ValueError, match="Expected documents with at least one word"):
        train_word_piece(documents, 100)


def test_other_refusals():
    with pytest.raises(ValueError, match="Expected an iterable of texts. Received: a single str"):
        train_word_piece("one text", 100)
    with pytest.raises(ValueError, match="Expected documents as str. Received: None"):
        train_word_piece(["a", None], 100)
    with pytest.raises(ValueError, match="at least 9 .* Received: 8"):
        train_word_piece(["ab"], 8)
