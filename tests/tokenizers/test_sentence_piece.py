import os
import pickle
import random
import unicodedata
from pathlib import Path

import pytest

from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.sentence_piece_training import _parts, train_sentence_piece

sentencepiece = pytest.importorskip("sentencepiece")

DATA = Path(os.environ.get("KERAS_BERT3_DATA", "-"))
RELEASED = DATA / "vocab" / "deberta-v3" / "spm.model"
needs_files = pytest.mark.skipif(not RELEASED.is_file(), reason="KERAS_BERT3_DATA is not set")

SENTENCES = [
    "the lowest of the low, and the newest",
    "lower and lower, don't, than the slowest",
    "a new newer newest thing of the sea",
]
FIRST = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
ALPHABET = "lower and don't 12\n\t,.!?é中\U0001f600\x00\u200b\u3000ﬁ①[MASK]"


@pytest.fixture(scope="module")
def ours():
    return train_sentence_piece(SENTENCES * 5, 330)


def fuzz(count, seed=0):
    draw = random.Random(seed)
    return ["".join(draw.choices(ALPHABET, k=draw.randint(0, 20))) for _ in range(count)]


def likeliest(text, processor):
    """The pieces with the largest sum of scores, by dynamic programming; bytes for the rest."""
    scores = {
        processor.id_to_piece(i): processor.get_score(i)
        for i in range(4 + 256, processor.get_piece_size())
    }
    words = "".join("▁" + word for word in text.split(" "))
    unknown = min(scores.values()) - 10.0
    best = [(0.0, 0)] + [(float("-inf"), 0)] * len(words)
    for end in range(1, len(words) + 1):
        for start in range(end):
            piece = words[start:end]
            score = scores.get(piece, unknown if end - start == 1 else float("-inf"))
            best[end] = max(best[end], (best[start][0] + score, start))
    pieces, end = [], len(words)
    while end:
        start = best[end][1]
        piece = words[start:end]
        is_known = piece in scores
        spelled = [piece] if is_known else [f"<0x{byte:02X}>" for byte in piece.encode("utf-8")]
        pieces, end = spelled + pieces, start
    return pieces


def test_layout_is_debertas(ours):
    assert ours.vocabulary[:4] == FIRST and ours.vocabulary[4] == "<0x00>"
    assert (ours.pad_id, ours.cls_id, ours.sep_id, ours.unknown_id) == (0, 1, 2, 3)
    assert ours.mask_id == ours.vocabulary_size - 1 and ours.vocabulary_size <= 330
    assert not set(ours("[MASK] [CLS]")) & set(ours.special_ids)


def test_pieces_have_the_largest_sum_of_scores(ours):
    draw = random.Random(0)
    for _ in range(40):
        word = "".join(draw.choices("lowestandher中", k=draw.randint(1, 9)))
        text = f"{word} newest {word[::-1]}"
        assert ours.tokenize(text) == likeliest(text, ours._processor), text


def test_texts_come_back_normalised(ours):
    for text in [*SENTENCES, "α  ﬁne\u3000\U0001f600 ①", "", "  "]:
        expected = " ".join(unicodedata.normalize("NFKC", text).split())
        assert ours.decode(ours(text)) == expected
    assert ours(["", "  "]) == [[], []]
    assert ours(["low", "new"]) == [ours("low"), ours("new")]


def test_decoding_keeps_or_drops_special_tokens(ours):
    ids = [1, *ours("the low"), ours.mask_id, 3, 2]
    assert ours.decode(ids) == "the low [UNK]"
    assert ours.decode(ids, skip_special_tokens=False) == "[CLS] the low [MASK] [UNK] [SEP]"
    with pytest.raises(ValueError, match="Expected an id from 0 to"):
        ours.decode([ours.vocabulary_size])


def test_T11_offsets_count_characters_of_the_untouched_text(ours):
    text = "α  lower\u3000\U0001f600x"
    ids, offsets = ours.encode_with_offsets(text)
    assert ids == ours(text)
    pieces = {offset: [] for offset in offsets}
    for index, offset in zip(ids, offsets, strict=True):
        pieces[offset].append(ours.id_to_token(index))
    assert pieces[9, 10] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    inside = [(start, end) for start, end in pieces if 3 <= start < end <= 8]
    assert "".join(text[start:end] for start, end in inside) == "lower"
    assert ours.encode_with_offsets("") == ([], [])


def test_L4_pieces_after_the_first_of_a_word_go_on_with_it_but_punctuation_does_not(ours):
    assert not ours.is_continuation[list(ours.special_ids)].any()
    flag = dict(zip(ours.vocabulary, ours.is_continuation.tolist(), strict=True))
    assert not any(is_inside for piece, is_inside in flag.items() if piece.startswith("▁"))
    assert not flag[","] and not flag["'"]
    assert flag["t"] and flag["<0xF0>"]
    ids = ours("the slowest, the")
    words, starts = [], ~ours.is_continuation[ids]
    for index, start in zip(ids, starts, strict=True):
        words += [""] if start else []
        words[-1] += ours.id_to_token(index)
    assert words == ["▁the", "▁slowest", ",", "▁the"]


def test_files_give_back_the_tokenizer(ours, tmp_path):
    ours.save(tmp_path)
    again = SentencePieceTokenizer.load(tmp_path)
    assert again.get_config() == ours.get_config() == pickle.loads(pickle.dumps(ours)).get_config()
    assert again("the low") == ours("the low")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("added_tokens.json", "spm.model", "tokenizer_config.json")
    ]


def test_broken_models_are_named(tmp_path):
    with pytest.raises(ValueError, match="Expected the path of a SentencePiece model"):
        SentencePieceTokenizer.load(tmp_path)
    with pytest.raises(ValueError, match="content of a SentencePiece model. Received: 7 bytes"):
        SentencePieceTokenizer(b"garbage")


def test_text_that_is_none_is_refused(ours):
    for text in (3, [None], "a\ud800"):
        with pytest.raises(ValueError, match="Expected text"):
            ours(text)


def test_learning_gives_the_same_model_always(ours):
    again = train_sentence_piece(iter(SENTENCES * 5), 330)
    assert again.get_config() == ours.get_config()
    with pytest.raises(ValueError, match="room for .*Received: 200"):
        train_sentence_piece(SENTENCES, 200)
    with pytest.raises(ValueError, match="at least one word"):
        train_sentence_piece([" \n"], 300)


def test_long_lines_are_cut_at_spaces_and_nothing_is_lost():
    line = "word " * 2000 + "中" * 3000
    parts = list(_parts(line))
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")
    assert max(len(part.encode()) for part in parts) <= 4192 and parts[0].endswith("word")


@pytest.fixture(scope="module")
def released():
    return SentencePieceTokenizer(RELEASED)


@needs_files
def test_released_file_gives_the_published_ids(released):
    assert released.mask_id == 128000 and released.vocabulary_size == 128001
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(RELEASED))
    for text in fuzz(200):
        ids, offsets = released.encode_with_offsets(text)
        assert ids == released(text) == theirs.encode(text)
        assert all(0 <= start <= end <= len(text) for start, end in offsets)
        stretches = (text[start:end] for start, end in offsets)
        assert all(s == s.strip() or not s.strip() for s in stretches)


@needs_files
def test_released_file_agrees_with_transformers(released, tmp_path):
    """On text that NFKC leaves alone: transformers 5 neither normalises nor falls back to bytes."""
    transformers = pytest.importorskip("transformers")
    released.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.mask_token_id == 128000 and len(theirs) == 128001
    lines = (DATA / "corpora" / "moby_dick.txt").read_text("utf-8")[:20_000].split("\n")
    lines = [line for line in lines if unicodedata.is_normalized("NFKC", line)]
    assert len(lines) > 50
    found = theirs(lines, add_special_tokens=False, return_offsets_mapping=True)
    for line, ids, offsets in zip(lines, found["input_ids"], found["offset_mapping"], strict=True):
        our_ids, our_offsets = released.encode_with_offsets(line)
        assert our_ids == ids and released.decode(ids) == " ".join(line.split())
        for (start, end), (our_start, our_end) in zip(offsets, our_offsets, strict=True):
            assert line[our_start:our_end] == line[start:end].strip()
