import copy
import json
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from keras_bert3.tokenizers.added_tokens import entries
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.tokenizers.word_piece_oracle import basic_words, oracle, strip_marks

TOY = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] hello world ##s naive cafe he ##llo 中 国 a ##a ! [ ] mask un "
    "##aff ##able - ß i ##i \u0307 ı $ + ^ ` 😀 x"
).split()
MORE = "arger ärger naïve Ärger か が – don ' t ΟΔΟς οδος α , . \ue000 ##\ue000 ##\u0301".split()
PIECES = [*TOY, *MORE]
FILES = ["bert-base-uncased-vocab.txt", "bert-base-cased-vocab.txt"]

# One character or stretch for each class that the rows T1-T12 name, and neighbours of each kind.
FUZZ = [
    *["hello", "world", "naive", "cafe", "unaffable", "HELLO", "Mask", "x", "a", "s", "i", "ß"],
    *["[MASK]", "[mask]", "[CLS]", "[", "]", "##s", "Ärger", "naïve", "e\u0301", "A\u030a\u0323"],
    *["が", "か\u3099", "カ", "한국", "中国", "豈", "\U0002b820", "\U0002f800", "😀", "💩", "👩‍👩"],
    *["$", "+", "^", "`", "!", "'", "–", "—", "\u2e43", "\u166d", "。", "¿", "_", "\x00", "\x07"],
    *["\x0b", "\x1c", "\x7f", "\x85", "\u200b", "\u200d", "\u00ad", "\ufffd", "\ufeff", "\ue000"],
    *[" ", " ", " ", " ", "\t", "\n", "\r", "\u00a0", "\u2028", "\u2029", "\u3000", "\u1680"],
    *["ΟΔΟΣ", "Σ", "İ", "ı", "I", "Ǆ", "ﬁ", "α", "\u0307", "\u0903", "\U00011938", "\U0001e900"],
    "long" * 51,
]


def fuzzed_texts(count):
    generator = random.Random(20181011)
    return ["".join(generator.choices(FUZZ, k=generator.randint(0, 24))) for _ in range(count)]


def toy(**settings):
    return WordPieceTokenizer(PIECES, **settings)


def published_file(name):
    path = Path(os.environ.get("KERAS_BERT3_DATA", "")) / "vocab" / name
    if "KERAS_BERT3_DATA" not in os.environ or not path.exists():
        pytest.skip("KERAS_BERT3_DATA has no published vocabularies")
    return path


def test_T1_special_tokens_in_text_only_on_request():
    assert toy().tokenize("hello[MASK]world") == ["hello", "[", "mask", "]", "world"]
    on = toy(special_tokens_in_text=True)
    assert on.tokenize("hello[MASK]world") == ["hello", "[MASK]", "world"]
    ids, offsets = on.encode_with_offsets("hello[MASK]world")
    assert ids == [5, on.mask_id, 6]
    assert offsets == [(0, 5), (5, 11), (11, 16)]


def test_T2_special_tokens_match_exactly():
    on = toy(special_tokens_in_text=True)
    assert on.tokenize("HELLO [mask]") == ["hello", "[", "mask", "]"]
    assert on.tokenize("[MASK]") == ["[MASK]"]
    assert on.tokenize("[PAD][UNK][CLS][SEP]") == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def test_T3_accents_follow_lowercase_unless_told_otherwise():
    assert toy().tokenize("Ärger naïve") == ["arger", "naive"]
    assert toy(strip_accents=False).tokenize("Ärger naïve") == ["ärger", "naïve"]


def test_T4_cased_text_is_untouched():
    assert toy(lowercase=False).tokenize("Ärger naïve") == ["Ärger", "naïve"]
    assert toy(lowercase=False).tokenize("Hello") == ["[UNK]"]


def test_T4_a_cased_checkpoint_loads_cased(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert tokenizer.lowercase is False
    assert tokenizer.max_word_length == 200
    assert tokenizer.tokenize("Ärger") == ["Ärger"]


def test_T5_kana_and_ideographs():
    assert toy().tokenize("が") == ["か"]
    assert toy(lowercase=False).tokenize("が") == ["が"]
    assert toy().tokenize("中国hello") == ["中", "国", "hello"]
    assert toy(split_chinese_characters=False).tokenize("中国hello") == ["[UNK]"]


def test_T6_symbols_and_emoji_stay():
    assert toy().tokenize("😀 hello😀") == ["😀", "[UNK]"]
    assert toy().tokenize("$+^`") == ["$", "+", "^", "`"]


def test_T7_adjacent_emoji_are_one_word_with_true_offsets():
    ids, offsets = toy().encode_with_offsets("💩💩💩")
    assert ids == [toy().unknown_id]
    assert offsets == [(0, 3)]


@pytest.mark.parametrize("mark", ["\x00", "\x07", "\u200b", "\u00ad", "\ufffd"])
def test_T8_control_characters_are_cleaned(mark):
    for lowercase in (True, False):
        tokenizer = toy(lowercase=lowercase)
        assert tokenizer.tokenize(f"hel{mark}lo") == ["hello"]
        assert tokenizer.encode_with_offsets(f"hel{mark}lo")[1] == [(0, 6)]


def test_T8_private_use_characters_are_not_control_characters():
    assert toy().tokenize("\ue000 a\ue000") == ["\ue000", "a", "##\ue000"]


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\u3000", "\u2009", "\t", "\r\n"])
def test_T9_every_space_splits(space):
    assert toy().tokenize(f"hello{space}world") == ["hello", "world"]


def test_T10_en_dash_is_a_word():
    assert toy(lowercase=False).tokenize("hello–world") == ["hello", "–", "world"]


def test_T11_offsets_count_characters():
    ids, offsets = toy().encode_with_offsets("α hello")
    assert toy().id_to_token(ids[1]) == "hello"
    assert offsets == [(0, 1), (2, 7)]


def test_T12_blank_texts_have_no_ids():
    assert toy()("") == []
    assert toy()("   ") == []
    assert toy()(["hello", "", " \n"]) == [[5], [], []]
    assert toy()([]) == []
    assert toy().encode_with_offsets("") == ([], [])


@pytest.mark.parametrize("lowercase", [True, False])
def test_T14_fuzzed_texts_equal_the_published_rules(lowercase):
    tokenizer = toy(lowercase=lowercase)
    expected_pieces = oracle(PIECES, lowercase)
    texts = fuzzed_texts(1000)
    expected = [expected_pieces(text) for text in texts]
    for text in texts:
        assert tokenizer.split_words(text) == basic_words(text, lowercase)
    assert [tokenizer.tokenize(text) for text in texts] == expected
    ids = [[PIECES.index(piece) for piece in pieces] for pieces in expected]
    assert toy(lowercase=lowercase)(texts) == ids
    assert tokenizer(tuple(texts)) == ids
    assert [tokenizer.encode_with_offsets(text)[0] for text in texts] == ids
    assert {piece for pieces in expected for piece in pieces} > {"[UNK]", "hello", "##s", "中"}


def test_T16_over_long_text_keeps_every_id_alone_and_in_a_batch():
    text = "hello world " * 300
    assert toy()(text) == [5, 6] * 300
    assert toy()([text, "hello"]) == [[5, 6] * 300, [5]]


def test_words_longer_than_the_limit_are_unknown():
    assert toy().tokenize("a" * 200) == ["a"] + ["##a"] * 199
    assert toy().tokenize("a" * 201) == ["[UNK]"]
    assert toy(max_word_length=3).tokenize("aaa aaaa") == ["a", "##a", "##a", "[UNK]"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_offsets_lead_back_to_the_text(lowercase):
    tokenizer = toy(lowercase=lowercase)
    checked = 0
    for text in fuzzed_texts(300):
        ids, offsets = tokenizer.encode_with_offsets(text)
        assert offsets == sorted(offsets)
        for index, (start, end) in zip(ids, offsets, strict=True):
            piece = tokenizer.id_to_token(index)
            if index == tokenizer.unknown_id:
                continue
            source = "".join(c for c in text[start:end] if c == "\ue000" or c.isprintable())
            source = source.replace("\ufffd", "")
            source = strip_marks(source.lower()) if lowercase else source
            assert source.replace("ς", "σ") == piece.removeprefix("##").replace("ς", "σ")
            checked += 1
    assert checked > 1000


def test_the_memory_of_earlier_calls_changes_nothing(monkeypatch):
    monkeypatch.setattr("keras_bert3.tokenizers.word_piece.MEMO_ENTRIES", 5)
    texts = fuzzed_texts(50)
    tokenizer, fresh = toy(), toy()
    first = [tokenizer([text]) for text in texts]
    assert first == [tokenizer([text]) for text in texts]
    assert [row for rows in first for row in rows] == fresh(texts)
    result = tokenizer("hello")
    result.append(99)
    assert tokenizer("hello") == [5]


def test_decode():
    tokenizer = toy()
    ids = [2, *tokenizer("unaffable hello! 💩"), 3, 0]
    assert tokenizer.decode(ids) == "unaffable hello ! [UNK]"
    text = tokenizer.decode(np.array(ids, "int32"), skip_special_tokens=False)
    assert text == "[CLS] unaffable hello ! [UNK] [SEP] [PAD]"
    assert tokenizer.decode([]) == ""
    with pytest.raises(ValueError, match="Expected an id from 0 to"):
        tokenizer.decode([len(PIECES)])


def test_split_words():
    assert toy().split_words("Don't\u00a0stop") == ["don", "'", "t", "stop"]


@pytest.mark.parametrize("text", [None, b"hello", float("nan"), 3])
def test_other_than_text_is_refused(text):
    for given in (text, ["hello", text]):
        with pytest.raises(ValueError, match="Expected text as str. Received: "):
            toy()(given)
    with pytest.raises(ValueError, match="Expected text as str. Received: "):
        toy().encode_with_offsets(text)


def test_refusals():
    with pytest.raises(ValueError, match="Expected text without lone surrogates"):
        toy()("hello \ud83d")
    with pytest.raises(ValueError, match="max_word_length of at least 1. Received: 0"):
        toy(max_word_length=0)
    with pytest.raises(ValueError, match=r"without \[MASK\]"):
        WordPieceTokenizer(PIECES[:4])


ADDED = ["[E1]", "[/E1]", {"content": "<S>", "special": True}, "Fo-O", "naïve"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("hello[E1]world", ["hello", "[E1]", "world"]),
        ("[E1][E1] [/e1]\tx", ["[E1]", "[E1]", "[/E1]", "x"]),
        ("<S><s>", ["<S>", "[UNK]", "s", "[UNK]"]),
        ("xFO-O's", ["x", "Fo-O", "'", "s"]),
        ("naive NAÏVE", ["naïve", "naïve"]),  # stood in the vocabulary
        ("[E1", ["[", "[UNK]"]),
    ],
)
def test_added_tokens_are_found_before_words(text, pieces):
    tokenizer = WordPieceTokenizer([*PIECES, "s"], added_tokens=ADDED)
    assert tokenizer.tokenize(text) == pieces
    ids, offsets = tokenizer.encode_with_offsets(text)
    assert [ids, ids, [5]] == tokenizer([text, text, "hello"])
    ends = [0, *(end for _, end in offsets)]
    assert all(start >= end for end, (start, _) in zip(ends, offsets, strict=False))


def test_ids_of_added_tokens_follow_the_vocabulary():
    tokenizer = toy(added_tokens=ADDED)
    size = len(PIECES)
    assert [tokenizer.token_to_id(t) for t in ("[E1]", "[/E1]", "<S>", "Fo-O")] == [
        *range(size, size + 4)
    ]
    assert tokenizer.vocabulary == [*PIECES, "[E1]", "[/E1]", "<S>", "Fo-O"]
    assert tokenizer.vocabulary_size == len(tokenizer.is_continuation) == size + 4
    assert tokenizer.special_ids == (*toy().special_ids, size + 2)
    ids = tokenizer("hello [E1]<S>")
    assert tokenizer.decode(ids) == "hello [E1]"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "hello [E1] <S>"


def test_added_tokens_are_words():
    tokenizer = toy(added_tokens=[*ADDED, {"content": "<L>", "lstrip": True, "rstrip": True}])
    text = "Don't[e1]  <l> Hello<S>naive[mask]"
    words = ["don", "'", "t", "[E1]", "<L>", "hello", "<S>", "naïve", "[", "mask", "]"]
    assert tokenizer.split_words(text) == words
    index = tokenizer.token_to_id
    assert tokenizer.whole_tokens("[e1]  <l> Hello[MASK]") == [
        (index("[E1]"), (0, 4)),
        (index("<L>"), (6, 9)),
    ]
    assert toy().whole_tokens("[E1] [MASK]") == []
    on = toy(special_tokens_in_text=True)
    assert on.whole_tokens("a [MASK]") == [(on.mask_id, (2, 8))]
    assert on.split_words("A[MASK]") == ["a", "[MASK]"]


def test_a_word_in_another_case_is_no_exact_token():
    tokenizer = toy(added_tokens=[{"content": "a", "special": True}])
    assert tokenizer.split_words("Aa AA") == ["a", "a", "aa"]
    assert tokenizer.tokenize("Aa AA") == ["a", "a", "a", "##a"]


def test_added_tokens_that_are_none_are_refused():
    with pytest.raises(ValueError, match="without whitespace. Received: 'a b'"):
        toy(added_tokens=["a b"])
    with pytest.raises(ValueError, match="without a sigma where text is folded"):
        toy(added_tokens=["Σ"])
    assert toy(lowercase=False, added_tokens=["Σ"]).tokenize("ΑΣ") == ["[UNK]", "Σ"]


SETTINGS = {
    "lowercase": False,
    "strip_accents": True,
    "split_chinese_characters": False,
    "max_word_length": 7,
    "special_tokens_in_text": True,
    "added_tokens": entries(["naïve", "[E1]", {"content": "<S>", "special": True}]),
}


def test_config_pickle_and_copies_keep_every_setting():
    original = toy(**SETTINGS)
    original("hello world")
    config = original.get_config()
    assert config["added_tokens"][0] is not original.added_tokens[0]
    assert config == {"vocabulary": PIECES, **SETTINGS}
    copies = [
        WordPieceTokenizer.from_config(json.loads(json.dumps(config))),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
        copy.copy(original),
    ]
    texts = [*fuzzed_texts(50), "hello[E1]naïve<S>"]
    for other in copies:
        assert other.get_config() == config
        assert other(texts) == original(texts)


def test_save_and_load(tmp_path):
    folder = tmp_path / "new" / "preset"
    toy(**SETTINGS).save(folder)
    assert sorted(file.name for file in folder.iterdir()) == ["tokenizer_config.json", "vocab.txt"]
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["do_lower_case"] is False
    assert settings["strip_accents"] is True
    assert settings["tokenize_chinese_chars"] is False
    added = {i: token["content"] for i, token in settings["added_tokens_decoder"].items()}
    assert added == {str(len(PIECES)): "[E1]", "37": "naïve", str(len(PIECES) + 1): "<S>"}
    assert (folder / "vocab.txt").read_text("utf-8").split() == PIECES
    assert WordPieceTokenizer.load(folder).get_config() == toy(**SETTINGS).get_config()
    toy().save(folder)
    assert WordPieceTokenizer.load(str(folder)).get_config() == toy().get_config()


def test_load_names_what_is_missing(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    with pytest.raises(ValueError, match="Expected a folder with tokenizer_config.json"):
        WordPieceTokenizer.load(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match="Expected the path of a vocabulary file"):
        WordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_published_vocabularies_round_trip_and_follow_the_rules(name, tmp_path):
    path = published_file(name)
    lowercase = "uncased" in name
    tokenizer = WordPieceTokenizer(path, lowercase=lowercase)
    tokenizer.save(tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == path.read_bytes()
    assert tokenizer.special_ids == (0, 100, 101, 102, 103)
    assert tokenizer.vocabulary_size == (30522 if lowercase else 28996)
    expected_pieces = oracle(tokenizer.vocabulary, lowercase)
    for text in fuzzed_texts(1000):
        assert tokenizer.tokenize(text) == expected_pieces(text)


def test_transformers_reads_the_saved_folder_alike(tmp_path):
    transformers = pytest.importorskip("transformers")
    toy(lowercase=False).save(tmp_path)
    peer = transformers.BertTokenizer.from_pretrained(str(tmp_path))
    text = "hello unaffable Ärger, 中国 [MASK] naïve!"
    ours = toy(lowercase=False, special_tokens_in_text=True)(text)
    assert peer(text, add_special_tokens=False)["input_ids"] == ours
