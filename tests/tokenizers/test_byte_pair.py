import json
import os
import pickle
import random
import re
from pathlib import Path

import pytest

from keras_bert3.tokenizers.byte_pair import TASK_TOKENS, BytePairTokenizer
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "-"))
RELEASED = DATA / "vocab" / "gpt1"
needs_files = pytest.mark.skipif(not RELEASED.is_dir(), reason="KERAS_BERT3_DATA is not set")

SENTENCES = [
    "the lowest of the low",
    "lower and lower, slower than the slowest",
    "new newer newest",
]
MERGES = [("l", "o"), ("lo", "w</w>"), ("lo", "w"), ("e", "r</w>"), ("low", "er</w>")]
PIECES = "<unk> l o w e r l</w> o</w> w</w> e</w> r</w> lo low</w> low er</w> lower</w> \n</w>"


def tokenizer(**settings):
    return BytePairTokenizer(
        PIECES.split(" "), MERGES, **{"text_standardization": "bert", **settings}
    )


def published_pieces(word, ranks):
    """`bpe` of text_utils.py, from its description: join the best pair everywhere, repeat."""
    pieces = [*word[:-1], word[-1] + "</w>"]
    while len(pieces) > 1:
        pairs = set(zip(pieces, pieces[1:], strict=False))
        best = min(pairs, key=lambda pair: ranks.get(pair, float("inf")))
        if best not in ranks:
            break
        joined, i = [], 0
        while i < len(pieces):
            found = tuple(pieces[i : i + 2]) == best
            joined.append("".join(best) if found else pieces[i])
            i += 2 if found else 1
        pieces = joined
    joined = " ".join(pieces)
    return ("\n</w>" if joined == "\n  </w>" else joined).split(" ")


def published_ids(text, folder):
    """The published route from a text to its ids, with nothing of ours."""
    ftfy, spacy = pytest.importorskip("ftfy"), pytest.importorskip("spacy")
    encoder = json.loads((folder / "encoder_bpe_40000.json").read_text("utf-8"))
    merges = (folder / "vocab_40000.bpe").read_text("utf-8").split("\n")[1:-1]
    ranks = {tuple(merge.split()): rank for rank, merge in enumerate(merges)}
    text = ftfy.fix_text(text)
    for old, new in zip("\u2014\u2013\u2015\u2026\u00b4", ["-", "-", "-", "...", "'"], strict=True):
        text = text.replace(old, new)
    pattern = r"""(-+|~+|!+|"+|;+|\?+|\++|,+|\)+|\(+|\/+|\*+|\[+|\]+|}+|{+|\|+|_+)"""
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"\s*\n\s*", " \n ", re.sub(pattern, r" \1 ", text)))
    ids, known = [], {}
    for token in spacy.blank("en").tokenizer(text.strip()):
        word = token.text.lower()
        if word not in known:
            known[word] = [encoder.get(piece, 0) for piece in published_pieces(word, ranks)]
        ids += known[word]
    return ids


def test_pieces_are_joined_in_the_order_of_learning():
    assert tokenizer().tokenize("lower low lo slow") == [
        *("lower</w>", "low</w>", "l", "o</w>", "<unk>", "low</w>")
    ]
    assert tokenizer()(["low", ""]) == [[12], []]


def test_random_words_equal_the_published_loop():
    ranks, vocabulary = {pair: i for i, pair in enumerate(MERGES)}, PIECES.split(" ")
    draw, ours = random.Random(0), tokenizer()
    for _ in range(500):
        word = "".join(draw.choices("lower", k=draw.randint(1, 12)))
        pieces = published_pieces(word, ranks)
        assert ours(word) == [vocabulary.index(p) for p in pieces], word


def test_GP2_special_tokens_follow_the_vocabulary_and_text_cannot_spell_them():
    ours = tokenizer(special_tokens=TASK_TOKENS)
    assert (ours.start_id, ours.delimiter_id, ours.classify_id) == (17, 18, 19)
    assert ours.vocabulary_size == 20 and not set(ours("_start_ _classify_")) & set(
        ours.special_ids
    )
    assert ours.decode([17, 12, 18, 15, 19]) == "low lower"
    assert ours.decode([17, 12], skip_special_tokens=False) == "_start_ low"
    with pytest.raises(ValueError, match="Received: '_start_'"):
        _ = tokenizer().start_id


@pytest.mark.parametrize("save", ["save", "save_openai"])
def test_files_give_back_the_tokenizer(tmp_path, save):
    ours = tokenizer(special_tokens=TASK_TOKENS)
    getattr(ours, save)(tmp_path)
    settings = (
        {} if save == "save" else {"text_standardization": "bert", "special_tokens": TASK_TOKENS}
    )
    again = BytePairTokenizer.load(tmp_path, **settings)
    assert again.get_config() == ours.get_config() == pickle.loads(pickle.dumps(ours)).get_config()
    assert not list(tmp_path.glob("*.partial"))


def test_broken_files_and_vocabularies_are_named(tmp_path):
    with pytest.raises(ValueError, match="Expected vocab.json and merges.txt, or encoder_bpe"):
        BytePairTokenizer.load(tmp_path)
    tokenizer().save(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\nl o\nlow\n")
    with pytest.raises(ValueError, match="two pieces a line in .*merges.txt.*Received: 'low'"):
        BytePairTokenizer.load(tmp_path)
    (tmp_path / "vocab.json").write_text('{"<unk>": 0, "a": 2}')
    with pytest.raises(ValueError, match="Expected ids 0 to 1 in .*vocab.json"):
        BytePairTokenizer.load(tmp_path)
    for vocabulary, merges, message in (
        (["a"], [], "a vocabulary with <unk>"),
        (["<unk>", "a", "a"], [], "each token once. Received: 'a' twice"),
        (["<unk>", "a", "b"], [("a", "b")], "no token 'ab'"),
    ):
        with pytest.raises(ValueError, match=message):
            BytePairTokenizer(vocabulary, merges, "bert")
    with pytest.raises(ValueError, match="Expected text as str. Received: 3"):
        tokenizer()(3)


def test_learning_gives_the_same_tokenizer_always_and_round_trips():
    ours = train_byte_pair(SENTENCES * 3, 40, "bert")
    assert ours.get_config() == train_byte_pair(iter(SENTENCES * 3), 40, "bert").get_config()
    assert 20 < len(ours.merges) <= 40 and ours.vocabulary[0] == "<unk>"
    for text in SENTENCES:
        assert ours.decode(ours(text)) == ours.standardize(text)
        assert 0 not in ours(text)
    with pytest.raises(ValueError, match="at least one word"):
        train_byte_pair([" \n"], 10, "bert")


def test_the_first_merge_is_the_most_frequent_pair():
    assert train_byte_pair(["aab aab aab ab"], 1, "bert").merges == [("a", "b</w>")]


@needs_files
def test_T15_GP4_released_files_give_the_published_ids():
    ours = BytePairTokenizer.load(RELEASED, special_tokens=TASK_TOKENS)
    assert ours.start_id == 40478 and ours.vocabulary_size == 40481
    for text in (
        "isn't it?",
        "The caf\u00e9\n \n\u2014 \u4e2d\u6587 U.S.A. \U0001f600",
        "a \u2028 b",
        "",
    ):
        assert ours(text) == published_ids(text, RELEASED)
    assert ours.tokenize("isn't it?") == ["is</w>", "n't</w>", "it</w>", "?</w>"]


@needs_files
def test_a_novel_gives_the_published_ids_and_its_text_back():
    text = (DATA / "corpora" / "moby_dick.txt").read_text("utf-8")[:400_000]
    ours = BytePairTokenizer.load(RELEASED)
    ids = ours(text)
    assert ids == published_ids(text, RELEASED)
    for paragraph in text[:100_000].split("\n\n"):
        ids = ours(paragraph)
        if 0 not in ids:
            assert ours.decode(ids) == ours.standardize(paragraph)
