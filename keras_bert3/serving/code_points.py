"""What BERT's basic tokenization does to each code point, found by asking it.

Cleaning, case folding, accent stripping and cutting into words look at one character at a time, so
they are a table: code point -> characters, each ordinary, a space, or a word of its own. Two things
look further, and are kept beside the table: the final sigma (`FINAL_SIGMA`), and the canonical
order of combining marks (Unicode Standard Annex 15, "Canonical Ordering Algorithm"), which matters
where marks remain once the non-spacing ones are dropped.

The table is probed from the tokenizer that trained the model, so the two cannot drift apart: tables
made from another library's Unicode version differ on hundreds of characters.
"""

import dataclasses
import functools
import unicodedata

from keras_bert3.tokenizers import basic_tokenization

SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
POINTS = 0x110000
"""Number of code points, surrogates included."""
# Planes 4 to 13 have no characters, 15 and 16 are for private use: they stay what they are.
_PROBED = (range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0xE1000))
_CHUNK = 512
# Marks that are not dropped, of different classes: NFD swaps them unless something stands between.
_HIGH_MARK, _LOW_MARK = "\u302e", "\U0001d165"


@dataclasses.dataclass(frozen=True)
class CodePoints:
    """The table, where it differs from "an ordinary character, kept".

    Args:
        changed: what a code point becomes; "" where it is dropped.
        spaces: resulting characters that separate words.
        alone: resulting characters that are words of their own.
        mark_classes: canonical combining classes of resulting characters that NFD reorders.
        barriers: dropped marks that nothing is reordered across.
        cased: code points that make a following capital sigma a final one, or keep one medial.
        case_ignorable: code points that a capital sigma's neighbours are looked up behind.
        cleaned: code points that are gone before its neighbours are looked at.
    """

    changed: dict[int, str]
    spaces: frozenset[str]
    alone: frozenset[str]
    mark_classes: dict[str, int]
    barriers: frozenset[int]
    cased: frozenset[int]
    case_ignorable: frozenset[int]
    cleaned: frozenset[int]


@functools.cache
def probe(lowercase: bool, strip_accents: bool, split_chinese_characters: bool) -> CodePoints:
    """Ask the tokenizer's own stages about each code point (half a second of processor time).

    Args:
        lowercase: see `WordPieceTokenizer`.
        strip_accents: see `WordPieceTokenizer`, here never None.
        split_chinese_characters: see `WordPieceTokenizer`.

    Example: `probe(True, True, True).changed[ord("É")]` is `"e"`.
    """
    normalize = basic_tokenization.normalizer(lowercase, strip_accents).normalize_str
    changed = _changes(normalize)
    spaces, alone = _kinds(split_chinese_characters)
    marks, barriers = _marks(changed, normalize) if strip_accents else ({}, frozenset())
    cased, ignorable, cleaned = _sigma_context(changed) if lowercase else [frozenset()] * 3
    return CodePoints(changed, spaces, alone, marks, barriers, cased, ignorable, cleaned)


@functools.cache
def probed() -> tuple[int, ...]:
    """The code points that are asked about."""
    return tuple(point for part in _PROBED for point in part)


def _changes(normalize) -> dict[int, str]:
    """What becomes of each code point, where it does not stay."""
    changed = {}
    rest = [point for point in probed() if chr(point) != "\n"]  # which stays, and separates here
    for first in range(0, len(rest), _CHUNK):
        chunk = rest[first : first + _CHUNK]
        before = "\n".join(map(chr, chunk))
        after = normalize(before)
        if after != before:
            pairs = zip(chunk, after.split("\n"), strict=True)
            changed.update((point, text) for point, text in pairs if text != chr(point))
    return changed


@functools.cache
def _kinds(split_chinese_characters: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Which characters separate words, and which are words: "a?a" tells."""
    cut = basic_tokenization.pre_tokenizer(split_chinese_characters).pre_tokenize_str
    spaces, alone = set(), set()
    for first in range(0, len(probed()), _CHUNK):
        chunk = [chr(point) for point in probed()[first : first + _CHUNK]]
        words = cut("a" + "".join(f"{character}a" for character in chunk))
        place = 0
        for _, (start, end) in words:
            spaces.update(chunk[i // 2] for i in range(place, start))
            if end - start == 1 and start % 2:
                alone.add(chunk[start // 2])
            place = end
    return frozenset(spaces), frozenset(alone)


def _marks(changed, normalize) -> tuple[dict[str, int], frozenset[int]]:
    """Marks that stay, with their combining classes; dropped ones that end a run of marks."""
    marks = [point for point in probed() if unicodedata.category(chr(point))[0] == "M"]
    lines = [f"{_HIGH_MARK}{chr(point)}{_LOW_MARK}" for point in marks]
    results = normalize("\n".join(lines)).split("\n")
    passed = {
        point: text.index(_LOW_MARK) < text.index(_HIGH_MARK)
        for point, text in zip(marks, results, strict=True)
    }
    kept = {chr(point): unicodedata.combining(chr(point)) for point in marks if passed[point]}
    dropped = {point for point in marks if changed.get(point) == ""}
    barriers = frozenset(point for point in dropped if not passed[point])
    return {mark: order for mark, order in kept.items() if ord(mark) not in dropped}, barriers


def _sigma_context(changed) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """What `str.lower` and cleaning see around a capital sigma."""
    cased, ignorable = _case_properties()
    settle, final = basic_tokenization.settle_final_sigmas, chr(FINAL_SIGMA)
    dropped = {point for point, text in changed.items() if not text} - ignorable
    # a letter that is not cased ends the word before a sigma, unless cleaning takes it away first
    cleaned = {c for c in dropped if settle(f"A{chr(c)}{chr(SIGMA)}")[-1] == final}
    return cased, ignorable, frozenset(cleaned)


@functools.cache
def _case_properties() -> tuple[frozenset[int], frozenset[int]]:
    """Cased and case-ignorable code points, as far as `str.lower` shows them by a sigma."""
    sigma, final = chr(SIGMA), chr(FINAL_SIGMA)
    cased = {c for c in probed() if f"{chr(c)}{sigma}".lower()[-1] == final}
    passed = {c for c in probed() if f"A{chr(c)}{sigma}".lower()[-1] == final}
    return frozenset(cased), frozenset(passed - cased)
