"""The file of a SentencePiece model, made from a list of pieces and scores."""

import struct
from collections.abc import Iterable, Iterator, Sequence

from keras_bert3.tokenizers.sentence_piece import FIRST_PIECES
from keras_bert3.tokenizers.sentence_piece_training import learned_model
from keras_bert3.tokenizers.vocabulary import UNKNOWN

# Types of pieces in sentencepiece_model.proto.
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
# A key of the wire format is the number of a field, times 8, plus how its value is written.
_BYTES, _FLOAT, _NUMBER = 2, 5, 0
_PIECES_KEY = 1 << 3 | _BYTES
_BYTE_PIECES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


def model_of_pieces(pieces: Sequence[tuple[str, float]], controls: Iterable[str] = ()) -> bytes:
    """Write an spm.model with these pieces, normalised like that of DeBERTa v3 (NFKC).

    For folders that hold pieces and scores without their spm.model, as transformers 5 writes them.
    Characters that no piece covers are spelled in bytes where all bytes have pieces. What else the
    file says comes from a model learned from two words.

    Args:
        pieces: pieces and their scores, in the order of their ids, [UNK] among them.
        controls: pieces that no text contains, beside [PAD], [CLS] and [SEP].

    Returns:
        The content of an spm.model.

    Example: `SentencePieceTokenizer(model_of_pieces(pieces)).save("deberta")`.
    """
    has_bytes = _BYTE_PIECES.issubset(piece for piece, _ in pieces)
    rest = learned_model(iter(["a b"]), vocab_size=299, byte_fallback=has_bytes)
    kept = [entry for key, entry in _entries(rest) if key != _PIECES_KEY]
    types = dict.fromkeys([*FIRST_PIECES, *controls], _CONTROL) | {UNKNOWN: _UNKNOWN}
    types |= dict.fromkeys(_BYTE_PIECES, _BYTE)
    own = (_piece(piece, score, types.get(piece, _NORMAL)) for piece, score in pieces)
    return b"".join([*own, *kept])


def _piece(piece: str, score: float, kind: int) -> bytes:
    """One entry of `pieces`: the text, the score and the type."""
    text = piece.encode("utf-8")
    content = _key(1, _BYTES) + _varint(len(text)) + text
    content += _key(2, _FLOAT) + struct.pack("<f", score)
    content += _key(3, _NUMBER) + _varint(kind)
    return _varint(_PIECES_KEY) + _varint(len(content)) + content


def _key(field: int, form: int) -> bytes:
    return _varint(field << 3 | form)


def _varint(number: int) -> bytes:
    """Write a number seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def _entries(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the key and the whole of each entry of a message whose entries all have lengths."""
    start = 0
    while start < len(message):
        key, at = _read_varint(message, start)
        length, at = _read_varint(message, at)
        yield key, message[start : at + length]
        start = at + length


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 128:
            return number, at
