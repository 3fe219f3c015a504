"""BERT's basic tokenization as stages of the Rust `tokenizers` library.

Source of the rules: google-research/bert `tokenization.py` (`BasicTokenizer`). In this order:

1. drop U+0000, U+FFFD and the categories Cc and Cf, but for tab, newline and carriage return;
2. put every CJK ideograph (eight blocks) on its own;
3. split on whitespace;
4. lower-case, decompose (NFD) and drop non-spacing marks (Mn), for uncased models;
5. put every punctuation mark on its own: the ASCII symbols and the categories P*.

The character classes are built from Python's `unicodedata`, as in the source, and handed to Rust as
regular expressions. The library's ready-made BERT stages keep older tables: they also drop
private-use characters, and know neither the punctuation nor the marks added to Unicode since.
Steps 2 and 3 come after step 4 here, which changes no token: neither folding nor decomposition
moves a character across whitespace, or in or out of the ideograph blocks.

What still depends on versions: Rust's newer table folds the case of some letters that the Unicode
version of the running Python (`unicodedata.unidata_version`) does not know yet; there are 55 of
them with Unicode 14, and every other code point follows the source.
"""

import functools
import itertools
import string
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

IDEOGRAPH_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

Ranges = tuple[tuple[int, int], ...]


def normalizer(lowercase: bool, strip_accents: bool) -> normalizers.Normalizer:
    """Build the stages that change characters: cleaning, case folding, accent stripping.

    Args:
        lowercase: fold to lower case, character by character (see `settle_final_sigmas`).
        strip_accents: decompose (NFD) and drop the non-spacing marks.

    Example:
    ```python
    normalizer(lowercase=True, strip_accents=True).normalize_str("Café")  # "cafe"
    ```
    """
    dropped = _regex(_categories("Cc", "Cf") + ((0xFFFD, 0xFFFD),), but_not="\\t\\n\\r")
    stages: list[normalizers.Normalizer] = [normalizers.Replace(dropped, "")]
    if lowercase:
        stages.append(normalizers.Lowercase())
    if strip_accents:
        stages.extend(normalizers.Replace(*pair) for pair in _newer_decompositions())
        stages.append(normalizers.NFD())
        stages.append(normalizers.Replace(_regex(_categories("Mn")), ""))
    return normalizers.Sequence(stages)


def pre_tokenizer(split_chinese_characters: bool) -> pre_tokenizers.PreTokenizer:
    """Build the stages that cut text into words: at whitespace, then around single characters.

    Args:
        split_chinese_characters: also put each CJK ideograph on its own (English and Chinese
            models do; Japanese and Korean kana and Hangul are never split).

    Example:
    ```python
    pre_tokenizer(True).pre_tokenize_str("it's")  # [("it", (0, 2)), ("'", (2, 3)), ("s", (3, 4))]
    ```
    """
    ascii_marks = tuple((ord(mark), ord(mark)) for mark in string.punctuation)
    alone = ascii_marks + _categories("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")
    if split_chinese_characters:
        alone += IDEOGRAPH_BLOCKS
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(_regex(alone), "isolated")]
    )


def settle_final_sigmas(text: str) -> str:
    """Replace each capital sigma that `str.lower` would make final (ς) by that letter.

    Case folding in Rust sees one character at a time, so it always gives the medial sigma; Python
    looks at the neighbours. The length of the text is kept, and with it every offset.

    Example: `settle_final_sigmas("ΟΔΟΣ")` is `"ΟΔΟς"`.
    """
    if "Σ" not in text:
        return text
    kept = [index for index, character in enumerate(text) if not _is_dropped(character)]
    # U+0130 alone grows when lowered; I is as cased as it is
    lowered = "".join(text[index] for index in kept).replace("\u0130", "I").lower()
    characters = list(text)
    for index, character in zip(kept, lowered, strict=True):
        if character == "ς":
            characters[index] = character
    return "".join(characters)


def _is_dropped(character: str) -> bool:
    """Tell whether cleaning removes the character."""
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


@functools.cache
def _newer_decompositions() -> tuple[tuple[str, str], ...]:
    """List the characters Python decomposes (NFD) otherwise than Rust, with their decompositions.

    A handful at most: those encoded after the table in Rust (U+11938 for Unicode 13).
    """
    rust = normalizers.NFD()
    decomposable = (c for c in map(chr, range(0x110000)) if unicodedata.decomposition(c))
    pairs = ((c, unicodedata.normalize("NFD", c)) for c in decomposable)
    return tuple((c, parts) for c, parts in pairs if rust.normalize_str(c) != parts)


@functools.cache
def _category_runs() -> tuple[tuple[str, int, int], ...]:
    """List the runs of equal Unicode category as (category, first, last)."""
    grouped = itertools.groupby(range(0x110000), lambda point: unicodedata.category(chr(point)))
    runs: list[tuple[str, int, int]] = []
    for category, points in grouped:
        first = next(points)
        last = max(points, default=first)
        runs.append((category, first, last))
    return tuple(runs)


def _categories(*names: str) -> Ranges:
    """List the code point ranges of the categories named."""
    return tuple((first, last) for category, first, last in _category_runs() if category in names)


def _regex(ranges: Ranges, but_not: str = "") -> Regex:
    """Write ranges as one bracketed class, less the characters of `but_not`."""
    body = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)
    return Regex(f"[{body}&&[^{but_not}]]" if but_not else f"[{body}]")
