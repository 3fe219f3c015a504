import io
import pickle
import zipfile

import pytest

from keras_bert3.checkpoints.huggingface_deberta_tokenizer import load_tokenizer
from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS

GPT2 = {character: index for index, character in enumerate([*BYTE_CHARACTERS, "lo"])}
CONTENT = {
    "dict_map": [("256", 90), *((str(i), 9) for i in range(256)), ("madeupword0000", 0)],
    "encoder": GPT2,
    "vocab": "#version: 0.2\nl o\n",
}


def write(file, content, form):
    """The forms of torch.save: a zip file since 1.6, a row of pickles before."""
    if form == "zip":
        with zipfile.ZipFile(file, "w") as opened:
            opened.writestr("bpe_encoder/data.pkl", pickle.dumps(content, protocol=2))
            opened.writestr("bpe_encoder/version", "3\n")
        return
    stream = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, content, []):
        pickle.dump(part, stream, protocol=2)
    file.write_bytes(stream.getvalue())


@pytest.mark.parametrize("form", ["zip", "pickles"])
def test_both_forms_of_the_file_give_debertas_ids(tmp_path, form):
    write(tmp_path / "bpe_encoder.bin", CONTENT, form)
    ours = load_tokenizer(tmp_path)
    assert ours.vocabulary[:6] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "lo", BYTE_CHARACTERS[0]]
    assert ours.vocabulary[-2:] == ["madeupword0000", "[MASK]"] and ours.mask_id == 262
    assert ours("lol") == [4, 5 + ord("l")] and ours.decode(ours("lol é")) == "lol é"


def test_the_file_of_torch_itself_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    for form in (True, False):
        torch.save(CONTENT, tmp_path / "bpe_encoder.bin", _use_new_zipfile_serialization=form)
        assert load_tokenizer(tmp_path)("lo") == [4]


class Harmful:
    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize("form", ["zip", "pickles"])
def test_files_that_would_run_code_are_refused(tmp_path, form, capsys):
    write(tmp_path / "bpe_encoder.bin", {**CONTENT, "more": Harmful()}, form)
    with pytest.raises(ValueError, match="bpe_encoder.bin.*the file asks for .*print"):
        load_tokenizer(tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "content",
    [{}, [], {**CONTENT, "dict_map": [("999", 1)]}, {**CONTENT, "vocab": "#version\na\n"}],
)
def test_broken_files_are_named(tmp_path, content):
    write(tmp_path / "bpe_encoder.bin", content, "zip")
    with pytest.raises(ValueError, match="Expected .*bpe_encoder.bin' to hold GPT-2's tokens"):
        load_tokenizer(tmp_path)
    (tmp_path / "bpe_encoder.bin").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match="Expected .*bpe_encoder.bin' to hold GPT-2's tokens"):
        load_tokenizer(tmp_path)
