"""Added tokens: what transformers saves is read, what is saved transformers reads, alike."""

import json
import random

import pytest
from tokenizers import AddedToken

from keras_bert3 import MaskedLM
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.huggingface_tokenizer import load_word_piece
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.checkpoints.models import VOCABULARY, masked_lm

TOKENS = [
    *("[E1]", "[/E1]", "Foo", "##q", "x中", "Ärger", "hello"),  # the last stands in the vocabulary
    AddedToken("<S>", special=True),
    AddedToken("Ab", special=True),
    AddedToken("<L>", lstrip=True),
    AddedToken("<R>", rstrip=True),
    AddedToken("<SN>", special=True, normalized=True),
    AddedToken("<N>", normalized=False),
]
PARTS = [
    *("[E1]", "[/E1]", "[e1]", "Foo", "foo", "xfoox", "##q", "##", "x中", "x 中", "Ärger", "arger"),
    *("<S>", "<s>", "Ab", "AB", " <L>", "<l>", " <R>  ", "<r>", "<SN>", "<sn>", "<N>", "<n>", "[E"),
    *("hello", "HELLO", "hellos", "[MASK]", "[mask]", "world", "a", "aa", "cafe", " ", "  ", "\t"),
    *("e\u0301", "\u200b", "!", "-", "\u00a0", "İ", "<X>"),
]


def texts_of(count):
    generator = random.Random(7)
    return ["".join(generator.choices(PARTS, k=generator.randint(0, 12))) for _ in range(count)]


@pytest.fixture(scope="module", params=[True, False], ids=["folded", "cased"])
def saved(request, tmp_path_factory):
    """A folder that transformers has saved, and what it loads from there."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("theirs")
    WordPieceTokenizer(VOCABULARY, lowercase=request.param).save(folder / "plain")
    theirs = transformers.BertTokenizer.from_pretrained(folder / "plain")
    theirs.add_tokens(TOKENS)
    theirs.add_special_tokens({"additional_special_tokens": ["<X>"]})
    theirs.save_pretrained(folder / "saved")
    return folder / "saved", transformers.BertTokenizer.from_pretrained(folder / "saved")


def reading_masks(tokenizer):
    """The same tokenizer, reading "[MASK]" in a text as theirs always does."""
    config = {**tokenizer.get_config(), "special_tokens_in_text": True}
    return WordPieceTokenizer.from_config(config)


def theirs_of(theirs, texts):
    return theirs(texts, add_special_tokens=False, return_offsets_mapping=True)


def test_ids_and_offsets_are_those_of_transformers(saved):
    folder, theirs = saved
    ours = reading_masks(load_word_piece(folder))
    assert ours.vocabulary_size == len(theirs) == len(VOCABULARY) + len(TOKENS)
    texts = texts_of(1500)
    expected = theirs_of(theirs, texts)
    assert ours(texts) == expected["input_ids"]
    assert {i for row in expected["input_ids"] for i in row} >= {*range(24, ours.vocabulary_size)}
    for text, offsets in zip(texts, expected["offset_mapping"], strict=True):
        if "中" not in text:  # theirs counts a space to it, which <R> takes
            assert ours.encode_with_offsets(text)[1] == list(map(tuple, offsets)), text


def test_transformers_reads_what_is_saved_alike(saved, tmp_path):
    folder, theirs = saved
    ours = load_word_piece(folder)
    task = masked_lm(tokenizer=ours, vocabulary_size=ours.vocabulary_size)
    save_huggingface(task, tmp_path / "hf")
    again = type(theirs).from_pretrained(tmp_path / "hf")
    texts = texts_of(300)
    assert again(texts)["input_ids"] == theirs(texts)["input_ids"]
    assert sorted(again.all_special_ids) == sorted(ours.special_ids)
    ids = ours("<S>hello [E1]<X>")
    assert ours.decode(ids) == "hello [E1]"
    assert again.decode(ids, skip_special_tokens=True).lower() == "hello [e1]"
    config = ours.get_config()
    assert load_word_piece(tmp_path / "hf").get_config() == config
    task.save_to_preset(tmp_path / "own")
    for name in ("hf", "own"):
        loaded = MaskedLM.from_preset(tmp_path / name).preprocessor.tokenizer
        assert loaded.get_config() == config


@pytest.mark.parametrize("has_entries", [True, False])
def test_folders_of_earlier_versions(saved, tmp_path, has_entries):
    folder, theirs = saved
    added = {i: token for i, token in theirs.added_tokens_decoder.items() if i >= len(VOCABULARY)}
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    entries = {str(i): token.__getstate__() for i, token in added.items()}
    decoder = {"added_tokens_decoder": entries} if has_entries else {"extra_special_tokens": []}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, **decoder}))
    ids = {token.content: i for i, token in added.items()}
    (tmp_path / "added_tokens.json").write_text(json.dumps(ids))
    peer, texts = type(theirs).from_pretrained(tmp_path), texts_of(300)
    ours = reading_masks(load_word_piece(tmp_path))
    assert ours(texts) == theirs_of(peer, texts)["input_ids"]


def test_a_gap_is_refused_by_name(saved, tmp_path):
    content = json.loads((saved[0] / "tokenizer.json").read_text())
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] != "[/E1]"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="the id 25 for .*'Foo' in '.*tokenizer.json'.*: 26"):
        load_word_piece(tmp_path)
