"""Byte-pair encoding of bytes: the tokenizer of DeBERTa v1, which is GPT-2's with other ids."""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from keras_bert3.tokenizers.byte_characters import BYTE_CHARACTERS, bytes_of
from keras_bert3.tokenizers.byte_pair_files import (
    Merges,
    check_merges,
    read_json_vocabulary,
    read_merges,
    write_merges,
)
from keras_bert3.tokenizers.vocabulary import (
    CLS,
    MASK,
    PAD,
    SEP,
    UNKNOWN,
    Vocabulary,
    checked_text,
    write_text,
)
from keras_bert3.tokenizers.whole_words import continues_word, trim

FILES = ("vocab.json", "merges.txt")
CONFIG_FILE = "tokenizer_config.json"
FIRST_TOKENS = (PAD, CLS, SEP, UNKNOWN)
"""What ids 0 to 3 stand for in every DeBERTa; [MASK] comes last."""


class ByteLevelBytePairTokenizer(Vocabulary):
    """Cut text into words with the space before them, words into pieces of bytes.

    Text is cut where GPT-2 cuts it (openai/gpt-2 `encoder.py`): at letters, digits, other signs and
    the English contractions. A word starts as the bytes of its UTF-8, each spelled as a printable
    character; of the pairs of neighbours, the one learned first is joined wherever it stands, and
    again, until no pair is known (Sennrich et al. 2016, section 3.2). Nothing is folded and nothing
    is unknown: `decode(tokenizer(text)) == text` for every text.

    A word at the very start has no space before it and so other pieces than inside a text.

    Args:
        vocabulary: the tokens in the order of their ids, the five special ones and the 256 bytes
            among them.
        merges: pairs of pieces, in the order in which they were learned.
        add_prefix_space: put a space before a text that has none; no released DeBERTa does.

    Raises:
        ValueError: for a vocabulary that repeats a token, or lacks a special token, a byte or a
            merged pair.

    Example:
    ```python
    tokenizer = ByteLevelBytePairTokenizer(vocabulary, [("Ġ", "l"), ("Ġl", "o")])
    tokenizer.tokenize("lo lo")  # ["l", "o", "Ġlo"]
    ```
    """

    def __init__(
        self, vocabulary: Sequence[str], merges: Merges, add_prefix_space: bool = False
    ) -> None:
        super().__init__(vocabulary)
        self.merges = [(left, right) for left, right in merges]
        self.add_prefix_space = add_prefix_space
        _check_pieces(self._ids, self.merges)
        self._rust = Tokenizer(models.BPE(self._ids, self.merges))
        self._rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)

    @functools.cached_property
    def is_continuation(self) -> np.ndarray:
        """For each id whether its token goes on with a word: bool [V], read-only.

        See `continues_word`; the first word of a text has no space before it, so that its first
        token counts as one that goes on.
        """
        special = set(self.special_ids)
        texts = (bytes_of(token).decode("utf-8", "replace") for token in self._vocabulary)
        flags = np.array(
            [
                index not in special and continues_word(text, text.startswith(" "))
                for index, text in enumerate(texts)
            ]
        )
        flags.flags.writeable = False
        return flags

    @overload
    def __call__(self, text: str) -> list[int]: ...

    @overload
    def __call__(self, text: Sequence[str]) -> list[list[int]]: ...

    def __call__(self, text: str | Sequence[str]) -> list[int] | list[list[int]]:
        """Turn a text into its ids, or a list of texts into a list of lists of ids.

        Special tokens spelled out in a text are ordinary text.

        Raises:
            ValueError: for anything that is not str, and for lone surrogates.
        """
        if isinstance(text, (list, tuple)):
            texts = [checked_text(one) for one in text]
            encodings = self._rust.encode_batch_fast(texts, add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        return self._rust.encode(checked_text(text), add_special_tokens=False).ids

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text as strings, in which "Ġ" is a space.

        Example: `tokenizer.tokenize("lo lo")` is `["lo", "Ġlo"]` where the vocabulary has these.
        """
        return [self._vocabulary[index] for index in self(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text and where each comes from.

        Returns:
            The ids, and as many pairs (start, end): `text[start:end]` is the stretch, counted in
            characters and without the space before it, that became the piece. Pieces that share a
            character each have the whole of it.

        Example: for "α hello" the pair of "Ġhello" is `(2, 7)`.
        """
        encoding = self._rust.encode(checked_text(text), add_special_tokens=False)
        return encoding.ids, [trim(text, *offsets) for offsets in encoding.offsets]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Give back the text of some ids; bytes that are not UTF-8 become U+FFFD.

        Args:
            ids: token ids, of any integer type.
            skip_special_tokens: leave out [PAD], [CLS], [SEP] and [MASK]; [UNK] always stays.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        skipped = set(self.special_ids) - {self.unknown_id} if skip_special_tokens else set()
        kept = (index for index in map(int, ids) if index not in skipped)
        return b"".join(bytes_of(self.id_to_token(index)) for index in kept).decode(
            "utf-8", "replace"
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the whole vocabulary among them."""
        return {
            "vocabulary": self.vocabulary,
            "merges": list(self.merges),
            "add_prefix_space": self.add_prefix_space,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ByteLevelBytePairTokenizer":
        """Build a tokenizer from the result of `get_config`."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by configuration."""
        return type(self).from_config, (self.get_config(),)

    def save(self, folder: str | Path) -> None:
        """Write vocab.json, merges.txt and tokenizer_config.json, as Hugging Face's DeBERTa has."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "tokenizer_class": "DebertaTokenizer",
            "add_prefix_space": self.add_prefix_space,
            "do_lower_case": False,
        }
        write_text(folder / FILES[0], json.dumps(self._ids))
        write_merges(folder / FILES[1], self.merges)
        write_text(folder / CONFIG_FILE, json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: str | Path, **overrides: Any) -> "ByteLevelBytePairTokenizer":
        """Read a folder written by `save`, or one of a Hugging Face DeBERTa checkpoint.

        Args:
            folder: where vocab.json and merges.txt are, and tokenizer_config.json may be.
            overrides: `add_prefix_space`, instead of the one stored.

        Raises:
            ValueError: if the files are missing or broken.
        """
        folder, settings = Path(folder), {}
        if not all((folder / name).is_file() for name in FILES):
            raise ValueError(
                f"Expected {' and '.join(FILES)} in '{folder}'. Received: a folder without them"
            )
        if (folder / CONFIG_FILE).is_file():
            stored = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
            settings["add_prefix_space"] = bool(stored.get("add_prefix_space", False))
        vocabulary = read_json_vocabulary(folder / FILES[0])
        return cls(vocabulary, read_merges(folder / FILES[1]), **{**settings, **overrides})


def deberta_vocabulary(gpt2_ids: Mapping[str, int], symbols: Iterable[str]) -> list[str]:
    """Put GPT-2's tokens into the order of DeBERTa v1's ids.

    DeBERTa took over the dictionary that fairseq made for RoBERTa: [PAD], [CLS], [SEP], [UNK], then
    GPT-2's tokens by their frequency in RoBERTa's texts, then fillers, then [MASK].

    Args:
        gpt2_ids: GPT-2's encoder.json, from tokens to ids.
        symbols: the first column of fairseq's dict.txt: GPT-2's ids as text, and fillers
            (`madeupword0000`).

    Returns:
        The tokens in the order of DeBERTa's ids: 50265 of them for the released files.

    Raises:
        ValueError: for a symbol that is neither an id of GPT-2's nor a filler.

    Example: `deberta_vocabulary({"a": 0, "b": 1}, ["1", "0"])[4:]` is `["b", "a", "[MASK]"]`.
    """
    token_of = {str(index): token for token, index in gpt2_ids.items()}
    tokens = [*FIRST_TOKENS]
    for symbol in symbols:
        if symbol not in token_of and symbol.isdigit():
            raise ValueError(
                f"Expected ids of GPT-2's {len(token_of)} tokens in the dictionary. "
                f"Received: {symbol!r}"
            )
        tokens.append(token_of.get(symbol, symbol))
    return tokens if MASK in tokens else [*tokens, MASK]


def _check_pieces(ids: Mapping[str, int], merges: Merges) -> None:
    missing = [character for character in BYTE_CHARACTERS if character not in ids]
    if missing:
        raise ValueError(
            f"Expected a vocabulary with a token for each of the 256 bytes. Received: one without "
            f"{len(missing)} of them, such as {missing[0]!r}"
        )
    check_merges(ids, merges)
