"""Bytes of protocol-buffer messages, for the few whose classes may not be installed.

A field is its number and kind, then its content (Protocol Buffers, "Encoding").
"""

import struct
from collections.abc import Iterator
from typing import Any

_LENGTH_DELIMITED = 2


def field(number: int, content: bytes | str) -> bytes:
    """Write one length-delimited field: bytes, a string or a message."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    """Write one field that is a whole number, not negative."""
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    """Write a number, seven bits a byte, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number; return it and the place behind it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return value, place


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and content of each field: bytes, or an int where it is a number."""
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        kind = key & 7
        if kind == 0:
            content, place = read_varint(data, place)
        elif kind == _LENGTH_DELIMITED:
            size, place = read_varint(data, place)
            content, place = data[place : place + size], place + size
        else:
            size = {1: 8, 5: 4}[kind]
            content = struct.unpack("<q" if size == 8 else "<i", data[place : place + size])[0]
            place += size
        yield key >> 3, content
