import json
import os
import unicodedata
from pathlib import Path

import pytest

from keras_bert3 import DebertaBackbone, DebertaV2Backbone, MaskedLM
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.huggingface_deberta_tokenizer import load_tokenizer
from keras_bert3.tasks.masked_lm import MaskedLMPreprocessor
from keras_bert3.tokenizers.byte_level_byte_pair_training import train_byte_level_byte_pair
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.sentence_piece_training import train_sentence_piece

pytest.importorskip("sentencepiece")

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "-"))
RELEASED = DATA / "vocab" / "deberta-v3" / "spm.model"
SENTENCES = ["the lowest of the low", "lower and lower, don't", "a new newer newest thing"] * 5
TEXTS = [*SENTENCES[:3], "Don't! 中 \U0001f600 12", "", "ﬁne\u3000low"]
SIZE = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8, "dropout": 0.0}
KINDS = ("v1", "v3")


@pytest.fixture(scope="module")
def tokenizers():
    return {
        "v1": train_byte_level_byte_pair(SENTENCES, 290),
        "v3": train_sentence_piece(SENTENCES, 330),
    }


@pytest.fixture(scope="module")
def folder(tokenizers, tmp_path_factory):
    """Folders of Hugging Face's layout with a tiny masked language model."""
    root = tmp_path_factory.mktemp("folders")
    for kind, cls in zip(KINDS, (DebertaBackbone, DebertaV2Backbone), strict=True):
        size = tokenizers[kind].vocabulary_size + 3
        backbone = cls(size, **SIZE, max_sequence_length=16, span=8)
        task = MaskedLM(backbone, preprocessor=MaskedLMPreprocessor(tokenizers[kind]))
        save_huggingface(task, root / kind)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_keep_their_tokenizer_through_both_layouts(kind, tokenizers, folder, tmp_path):
    task = MaskedLM.from_preset(folder / kind)
    ours = task.preprocessor.tokenizer
    assert type(ours) is type(tokenizers[kind])
    assert ours.get_config() == tokenizers[kind].get_config()
    task.save_to_preset(tmp_path / "own")
    again = MaskedLM.from_preset(tmp_path / "own").preprocessor.tokenizer
    assert again.get_config() == ours.get_config()


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_loads_what_is_written_and_agrees(kind, tokenizers, folder, tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder / kind), tokenizers[kind]
    assert theirs.mask_token_id == ours.mask_id and len(theirs) == ours.vocabulary_size
    # theirs neither normalises for SentencePiece nor falls back to bytes
    texts = [text for text in TEXTS if kind == "v1" or text.isascii()]
    assert theirs(texts, add_special_tokens=False)["input_ids"] == ours(texts)
    theirs.save_pretrained(tmp_path)  # tokenizer.json alone
    assert not (tmp_path / "vocab.json").exists() and not (tmp_path / "spm.model").exists()
    again = load_tokenizer(tmp_path)
    assert again(TEXTS) == ours(TEXTS) and again.vocabulary == ours.vocabulary
    assert again.special_ids == ours.special_ids


@pytest.mark.parametrize("form", ["json alone", "pieces and added_tokens.json"])
@pytest.mark.parametrize("kind", KINDS)
def test_added_tokens_are_never_read_as_text(kind, form, tokenizers, folder, tmp_path):
    if form == "json alone":
        transformers = pytest.importorskip("transformers")
        theirs = transformers.AutoTokenizer.from_pretrained(folder / kind)
        theirs.add_tokens(["<e>"])
        theirs.save_pretrained(tmp_path)
    else:
        tokenizers[kind].save(tmp_path)
        content = {"[MASK]": tokenizers[kind].mask_id, "<e>": tokenizers[kind].vocabulary_size}
        (tmp_path / "added_tokens.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="Expected no tokens added.*Received: <e> in"):
        load_tokenizer(tmp_path)


def test_the_kind_is_told_by_the_files(tmp_path):
    assert load_tokenizer(tmp_path) is None
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert load_tokenizer(tmp_path)("A") == [5]


@pytest.mark.parametrize("name", ["do_lower_case", "split_by_punct"])
def test_settings_that_no_deberta_has_are_refused(tokenizers, tmp_path, name):
    tokenizers["v3"].save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({name: True}))
    with pytest.raises(ValueError, match=f"Expected {name} to be false in .*Received: True"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("vocab", "added", "message"),
    [
        ([["[PAD]"]], [], "Expected pieces and scores in .*tokenizer.json"),
        (
            [["[PAD]", 0], ["[CLS]", 0], ["[SEP]", 0], ["[UNK]", 0], ["a", -1]],
            [{"content": "[MASK]", "id": 7}],
            "right after the 5 pieces.*Received: id 7",
        ),
    ],
)
def test_broken_pieces_are_named(tmp_path, vocab, added, message):
    content = {"model": {"type": "Unigram", "vocab": vocab}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)


@pytest.mark.skipif(not RELEASED.is_file(), reason="KERAS_BERT3_DATA is not set")
def test_pieces_and_scores_alone_give_the_released_tokenizer(tmp_path):
    released = SentencePieceTokenizer(RELEASED)
    score = released._processor.get_score
    vocab = [[piece, score(i)] for i, piece in enumerate(released.vocabulary[:-1])]
    content = {"model": {"type": "Unigram", "vocab": vocab}, "added_tokens": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    again = load_tokenizer(tmp_path)
    text = (DATA / "corpora" / "moby_dick.txt").read_text("utf-8")[:20_000]
    assert not unicodedata.is_normalized("NFKC", "ﬁ①") and again.mask_id == 128000
    for one in (text, "ﬁ① \U000132b9 \x00 ｈｅｌｌｏ\u200bx"):
        assert again(one) == released(one)
