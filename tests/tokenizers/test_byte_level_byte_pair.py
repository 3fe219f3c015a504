import json
import os
import pickle
import random
from pathlib import Path

import pytest

from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS, bytes_of
from keras_bert3.tokenizers.byte_level_byte_pair import (
    ByteLevelBytePairTokenizer,
    deberta_vocabulary,
)
from keras_bert3.tokenizers.byte_level_byte_pair_training import train_byte_level_byte_pair
from keras_bert3.tokenizers.byte_pair_files import read_merges

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "-"))
GPT2 = DATA / "vocab" / "gpt2"
needs_files = pytest.mark.skipif(not GPT2.is_dir(), reason="KERAS_BERT3_DATA is not set")

SENTENCES = [
    "the lowest of the low",
    "lower and lower, don't, than the slowest",
    "new\n  newest 1234",
]
MERGES = [("l", "o"), ("Ġ", "lo"), ("lo", "w"), ("Ġlo", "w"), ("e", "r"), ("Ġlow", "er")]
FIRST = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
VOCABULARY = [*FIRST, *BYTE_CHARACTERS, *map("".join, MERGES), "[MASK]"]
ALPHABET = "lower and don't 12\n\t,.!?é中\U0001f600\x00\u200b\u3000ﬁ[MASK]"


def tokenizer(**settings):
    return ByteLevelBytePairTokenizer(VOCABULARY, MERGES, **settings)


def fuzz(count, seed=0):
    draw = random.Random(seed)
    return ["".join(draw.choices(ALPHABET, k=draw.randint(0, 20))) for _ in range(count)]


def published_pieces(text, ranks):
    """openai/gpt-2 `encoder.py` from its description: cut, spell in bytes, join the best pair."""
    regex = pytest.importorskip("regex")
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    pieces = []
    for word in regex.findall(pattern, text):
        parts = [BYTE_CHARACTERS[byte] for byte in word.encode("utf-8")]
        while len(parts) > 1:
            pairs = set(zip(parts, parts[1:], strict=False))
            best = min(pairs, key=lambda pair: ranks.get(pair, float("inf")))
            if best not in ranks:
                break
            joined, i = [], 0
            while i < len(parts):
                found = tuple(parts[i : i + 2]) == best
                joined.append("".join(best) if found else parts[i])
                i += 2 if found else 1
            parts = joined
        pieces += parts
    return pieces


def test_bytes_are_spelled_as_published():
    assert len(set(BYTE_CHARACTERS)) == 256 and all(len(c) == 1 for c in BYTE_CHARACTERS)
    assert [BYTE_CHARACTERS[b] for b in b" a\n\xad\xff"] == ["Ġ", "a", "Ċ", "Ń", "ÿ"]
    assert bytes_of("Ġa") == b" a" and bytes_of("中") == "中".encode()


def test_random_texts_equal_the_published_loop_and_come_back():
    ours, ranks = tokenizer(), {pair: rank for rank, pair in enumerate(MERGES)}
    texts = fuzz(300)
    for text, ids in zip(texts, ours(texts), strict=True):
        assert ours.tokenize(text) == published_pieces(text, ranks), text
        assert ids == ours(text) and ours.decode(ids) == text
    assert ours(["", " "]) == [[], [VOCABULARY.index("Ġ")]]


def test_T11_offsets_count_characters_of_the_text_without_the_space_before():
    ours = tokenizer()
    ids, offsets = ours.encode_with_offsets("α lower\U0001f600")
    assert [ours.id_to_token(i) for i in ids][2:4] == ["Ġlower", "ð"]
    assert offsets == [(0, 1), (0, 1), (2, 7), *[(7, 8)] * 4]
    for text in fuzz(100, seed=1):
        ids, offsets = ours.encode_with_offsets(text)
        assert ids == ours(text)
        for index, (start, end) in zip(ids, offsets, strict=True):
            # a piece of several characters is what the stretch says; else a part of one character
            piece = ours.decode([index]).strip()
            assert piece in (text[start:end], text[start:end].strip()) or "\ufffd" in piece


def test_special_tokens_stand_where_deberta_has_them_and_text_cannot_spell_them():
    ours = tokenizer()
    assert (ours.pad_id, ours.cls_id, ours.sep_id, ours.unknown_id) == (0, 1, 2, 3)
    assert ours.mask_id == ours.vocabulary_size - 1
    assert not set(ours("[MASK] [CLS]")) & set(ours.special_ids)
    low = ours(" low")
    assert ours.decode([1, *low, ours.mask_id, 3, 2]) == " low[UNK]"
    assert ours.decode([1, *low, 2], skip_special_tokens=False) == "[CLS] low[SEP]"


def test_L4_pieces_after_the_first_of_a_word_go_on_with_it_but_punctuation_does_not():
    ours = tokenizer()
    ids = ours(" lowest, a")
    pieces = list(zip(ours.tokenize(" lowest, a"), ours.is_continuation[ids], strict=True))
    assert pieces == [
        *(("Ġlow", False), ("e", True), ("s", True), ("t", True), (",", False)),
        *(("Ġ", False), ("a", True)),
    ]
    assert not ours.is_continuation[list(ours.special_ids)].any()


def test_a_space_is_put_before_the_text_where_asked():
    assert tokenizer(add_prefix_space=True)("low low") == tokenizer()(" low low")


def test_files_give_back_the_tokenizer(tmp_path):
    ours = tokenizer(add_prefix_space=True)
    ours.save(tmp_path)
    again = ByteLevelBytePairTokenizer.load(tmp_path)
    assert again.get_config() == ours.get_config() == pickle.loads(pickle.dumps(ours)).get_config()
    assert not ByteLevelBytePairTokenizer.load(tmp_path, add_prefix_space=False).add_prefix_space
    assert not list(tmp_path.glob("*.partial"))
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(ValueError, match="Expected vocab.json and merges.txt in"):
        ByteLevelBytePairTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        ([*FIRST, "[MASK]", "a"], [], "each of the 256 bytes.*without 255"),
        (VOCABULARY[1:], MERGES, r"without \[PAD\]"),
        (VOCABULARY, [("a", "b")], "no token 'ab'"),
    ],
)
def test_vocabularies_without_what_is_needed_are_refused(vocabulary, merges, message):
    with pytest.raises(ValueError, match=message):
        ByteLevelBytePairTokenizer(vocabulary, merges)


def test_text_that_is_none_is_refused():
    for text in (3, [None], ["a\ud800"]):
        with pytest.raises(ValueError, match="Expected text"):
            tokenizer()(text)


def test_ids_follow_the_dictionary_of_fairseq():
    vocabulary = deberta_vocabulary({"a": 0, "b": 1}, ["1", "0", "madeupword0000"])
    assert vocabulary == [*FIRST, "b", "a", "madeupword0000", "[MASK]"]
    with pytest.raises(ValueError, match="Expected ids of GPT-2's 1 tokens.*Received: '7'"):
        deberta_vocabulary({"a": 0}, ["7"])


def test_learning_gives_the_same_tokenizer_always_and_round_trips():
    ours = train_byte_level_byte_pair(SENTENCES * 3, 290)
    assert ours.get_config() == train_byte_level_byte_pair(iter(SENTENCES * 3), 290).get_config()
    assert ours.vocabulary_size == 290 and ours.vocabulary[:4] == FIRST
    assert ours.mask_id == 289 and len(ours.merges) == 29
    for text in SENTENCES:
        assert ours.decode(ours(text)) == text and len(ours(text)) < len(text)
    assert train_byte_level_byte_pair(["aab aab ab"], 262).merges == [("a", "b")]
    with pytest.raises(ValueError, match="at least 261 .*Received: 260"):
        train_byte_level_byte_pair(SENTENCES, 260)


@pytest.fixture(scope="module")
def released():
    """GPT-2's tokens and merges; their order by frequency is not among the files."""
    ids = json.loads((GPT2 / "encoder.json").read_text("utf-8"))
    symbols = [*map(str, range(len(ids))), *(f"madeupword{i:04}" for i in range(3))]
    return ByteLevelBytePairTokenizer(
        deberta_vocabulary(ids, symbols), read_merges(GPT2 / "vocab.bpe")
    )


@needs_files
def test_released_files_agree_with_transformers(released, tmp_path):
    transformers = pytest.importorskip("transformers")
    released.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert released.vocabulary_size == len(theirs) == 50265
    assert released.mask_id == theirs.mask_token_id == 50264
    novel = (DATA / "corpora" / "moby_dick.txt").read_text("utf-8")[:60_000].split("\n")
    # the literal "[MASK]" is a token to them, text to us
    texts = [text for text in [*fuzz(200), *novel] if "[MASK]" not in text]
    found = theirs(texts, add_special_tokens=False, return_offsets_mapping=True)
    for text, ids, offsets in zip(texts, found["input_ids"], found["offset_mapping"], strict=True):
        assert released.encode_with_offsets(text)[0] == ids, text
        for (start, end), (our_start, our_end) in zip(
            offsets, released.encode_with_offsets(text)[1], strict=True
        ):
            assert text[our_start:our_end].strip() == text[start:end].strip()
        assert released.decode(ids) == text
