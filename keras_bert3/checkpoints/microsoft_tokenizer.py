"""The tokenizer file of microsoft/DeBERTa v1: bpe_encoder.bin, read without PyTorch."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

from keras_bert3.tokenizers.byte_level_byte_pair import (
    ByteLevelBytePairTokenizer,
    deberta_vocabulary,
)

FILE = "bpe_encoder.bin"
# PyTorch's older files are pickles in a row: a magic number, a version, the system, the content.
_PICKLES_BEFORE = 3


class _PlainUnpickler(pickle.Unpickler):
    """Reads dicts, lists, strings and numbers; whatever would have to be imported is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}")


def load_byte_level(folder: Path) -> ByteLevelBytePairTokenizer:
    """Load bpe_encoder.bin: GPT-2's tokens and merges, and fairseq's order of them.

    Raises:
        ValueError: if the file is broken or holds anything but text and numbers.
    """
    file = folder / FILE
    broken = (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, KeyError, IndexError)
    try:
        content = _read(file)
        lines = content["vocab"].split("\n")[1:]
        merges = [tuple(line.split(" ")) for line in lines if line.strip()]
        symbols = [str(symbol) for symbol, _ in content["dict_map"]]
        vocabulary = deberta_vocabulary(content["encoder"], symbols)
        return ByteLevelBytePairTokenizer(vocabulary, [(left, right) for left, right in merges])
    except (*broken, ValueError, TypeError, AttributeError, OSError) as error:
        raise ValueError(
            f"Expected '{file}' to hold GPT-2's tokens (encoder), merges (vocab) and their order "
            f"(dict_map). Received: {' '.join(str(error).split())[:200]}"
        ) from error


def _read(file: Path) -> dict[str, Any]:
    """Read PyTorch's zip file or its older row of pickles."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as opened:
            name = next(name for name in opened.namelist() if name.endswith("data.pkl"))
            return _PlainUnpickler(io.BytesIO(opened.read(name))).load()
    with file.open("rb") as stream:
        for _ in range(_PICKLES_BEFORE):
            _PlainUnpickler(stream).load()
        return _PlainUnpickler(stream).load()
