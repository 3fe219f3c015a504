import numpy as np
import pytest

from keras_bert3.tokenizers.vocabulary import (
    Vocabulary,
    checked_vocabulary,
    read_vocabulary,
    write_text,
)

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_special_ids_come_from_the_tokens():
    words = Vocabulary(["x", "[MASK]", "[SEP]", "##y", "[CLS]", "[UNK]", "[PAD]"])
    ids = (words.pad_id, words.unknown_id, words.cls_id, words.sep_id, words.mask_id)
    assert ids == (6, 5, 4, 2, 1)
    assert words.special_ids == ids
    assert words.vocabulary_size == 7


def test_is_continuation():
    words = Vocabulary([*SPECIALS, "un", "##able", "#", "##"])
    assert words.is_continuation.dtype == bool
    assert np.flatnonzero(words.is_continuation).tolist() == [6, 8]
    with pytest.raises(ValueError, match="read-only"):
        words.is_continuation[0] = True


def test_look_up_and_its_refusals():
    words = Vocabulary([*SPECIALS, "un"])
    assert words.token_to_id("un") == 5
    assert words.id_to_token(5) == "un"
    with pytest.raises(ValueError, match="Expected a token of the vocabulary. Received: 'xx'"):
        words.token_to_id("xx")
    for index in (-1, 6):
        with pytest.raises(ValueError, match=f"Expected an id from 0 to 5. Received: {index}"):
            words.id_to_token(index)


def test_the_list_handed_out_is_a_copy():
    words = Vocabulary([*SPECIALS, "un"])
    words.vocabulary.append("intruder")
    assert words.vocabulary == [*SPECIALS, "un"]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "at least one token"),
        (SPECIALS[:4], r"without \[MASK\]"),
        (["a", *SPECIALS[1:4]], r"without \[PAD\], \[MASK\]"),
        ([*SPECIALS, "a", "a"], r"Received: 'a' twice \(ids 5 and 6\)"),
        ([*SPECIALS, None], r"Received: None \(id 5\)"),
        ([*SPECIALS, " a"], "outer whitespace"),
        ([*SPECIALS, "a\nb"], "line breaks"),
    ],
)
def test_unusable_vocabularies_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        checked_vocabulary(tokens)


def test_read_strips_lines_and_keeps_inner_empty_ones(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\r\n  a \n\n\u3000b\u2028c\n".encode())
    assert read_vocabulary(path) == ["[PAD]", "a", "", "b\u2028c"]
    path.write_bytes(b"[PAD]\na")
    assert read_vocabulary(path) == ["[PAD]", "a"]


def test_read_names_the_missing_file(tmp_path):
    with pytest.raises(ValueError, match="Expected the path of a vocabulary file. Received: .*no"):
        read_vocabulary(tmp_path / "no.txt")


def test_read_tells_invalid_utf8_by_file_and_offset(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"byte 0xe9 at offset 9 of .*vocab\.txt"):
        read_vocabulary(path)


def test_write_replaces_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new\ud800")
    assert path.read_bytes() == b"old\n"
    write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]


def test_a_failed_replacement_leaves_no_partial_file(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        write_text(tmp_path / "taken", "text")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
