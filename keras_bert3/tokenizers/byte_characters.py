"""Bytes spelled as printable characters, for vocabularies of bytes in text files."""


def _byte_characters() -> list[str]:
    """A printable character for each byte, those that are printable already for themselves.

    The others, in order, take the code points from 256 on: a space is "Ġ" (Radford et al. 2019,
    openai/gpt-2 `encoder.py`).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    code_points = {byte: 256 + place for place, byte in enumerate(others)}
    return [chr(code_points.get(byte, byte)) for byte in range(256)]


BYTE_CHARACTERS = _byte_characters()
"""The character of each byte, 0 to 255."""
_BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def bytes_of(token: str) -> bytes:
    """Return the bytes a token stands for; one that is not spelled so stands for its own text.

    Example: `bytes_of("Ġa")` is `b" a"`.
    """
    if all(character in _BYTE_OF for character in token):
        return bytes(_BYTE_OF[character] for character in token)
    return token.encode("utf-8")
