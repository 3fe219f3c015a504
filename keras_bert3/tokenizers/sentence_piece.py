"""SentencePiece: the tokenizer of DeBERTa v2 and v3."""

import functools
import importlib
import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

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

MODEL_FILE = "spm.model"
ADDED_FILE = "added_tokens.json"
CONFIG_FILE = "tokenizer_config.json"
FIRST_PIECES = (PAD, CLS, SEP, UNKNOWN)
"""What ids 0 to 3 stand for in every DeBERTa."""
SPACE = "▁"


class SentencePieceTokenizer(Vocabulary):
    """Cut text into the likeliest pieces of a SentencePiece model.

    Text is normalised as the model says (NFKC and simple spaces in the released ones), spaces
    become "▁", one is put before the first word, and of all ways to cut the result into pieces the
    one with the largest sum of scores is taken (Kudo 2018, section 3.2; Kudo & Richardson 2018).
    Characters that no piece covers become a piece for each of their bytes, where the model has
    those, else [UNK]. The work is done by the package `sentencepiece` itself, so that ids are those
    the released models were trained on.

    [MASK] takes the id that follows the pieces (128000 in the released ones) where the model has
    no such piece. The token tables of released models have more rows than there are tokens.

    Args:
        model: the path of an spm.model, or its content.

    Raises:
        ValueError: for a file that is missing, broken or lacks [PAD], [CLS], [SEP] or [UNK].
        ImportError: without the package `sentencepiece`.

    Example:
    ```python
    tokenizer = SentencePieceTokenizer("deberta-v3-base/spm.model")
    tokenizer.tokenize("Hello world!")  # ["▁Hello", "▁world", "!"]
    tokenizer.mask_id  # 128000
    ```
    """

    def __init__(self, model: bytes | str | Path) -> None:
        self._model = model if isinstance(model, bytes) else _read(Path(model))
        self._processor = _processor(self._model)
        pieces = [self._processor.id_to_piece(i) for i in range(self._processor.get_piece_size())]
        self._num_pieces = len(pieces)
        super().__init__(pieces if MASK in pieces else [*pieces, MASK])

    @functools.cached_property
    def is_continuation(self) -> np.ndarray:
        """For each id whether its token goes on with a word: bool [V], read-only.

        See `continues_word`.
        """
        special = set(self.special_ids)
        flags = np.array(
            [
                index not in special
                and continues_word(piece.removeprefix(SPACE), piece.startswith(SPACE))
                for index, piece in enumerate(self._vocabulary)
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

        Special tokens spelled out in a text are ordinary text. A list is worked on by all processor
        cores.

        Raises:
            ValueError: for anything that is not str, and for lone surrogates.
        """
        if isinstance(text, (list, tuple)):
            return self._processor.encode([checked_text(one) for one in text])
        return self._processor.encode(checked_text(text))

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text as strings, in which "▁" is a space.

        Example: `tokenizer.tokenize("Hello")` is `["▁Hello"]` where the model has this piece.
        """
        return [self._vocabulary[index] for index in self(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text and where each comes from.

        Returns:
            The ids, and as many pairs (start, end): `text[start:end]` is the stretch of the
            untouched text, counted in characters and without whitespace around it, that became the
            piece. The bytes of a character each have the whole of it; a piece that stands for the
            space before the first word alone has nothing.

        Example: for "α hello" the second pair is `(2, 7)`.
        """
        found = self._processor.encode(checked_text(text), return_type="offset_mapping")
        offsets: list[tuple[int, int]] = []
        # SentencePiece gives a character to the last of its bytes.
        following = (0, 0)
        pairs = zip(reversed(found["ids"]), reversed(found["offsets"]), strict=True)
        for index, (start, end) in pairs:
            is_byte = self._processor.is_byte(index)
            if not is_byte or start != end:
                following = trim(text, start, end)
            offsets.append(following)
        return found["ids"], offsets[::-1]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Join pieces into text.

        What normalisation changed stays changed: `encode_with_offsets` finds the true text. A space
        stands on both sides of a special token.

        Args:
            ids: token ids, of any integer type.
            skip_special_tokens: leave out [PAD], [CLS], [SEP] and [MASK]; [UNK] always stays.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        special = set(self.special_ids)
        skipped = special - {self.unknown_id} if skip_special_tokens else set()
        kept = [index for index in map(int, ids) if index not in skipped]
        texts: list[str] = []
        for is_special, run in itertools.groupby(kept, special.__contains__):
            run = list(run)
            tokens = [self.id_to_token(index) for index in run]
            texts += tokens if is_special else [self._processor.decode(run)]
        return " ".join(texts)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's argument: the content of an spm.model."""
        return {"model": self._model}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SentencePieceTokenizer":
        """Build a tokenizer from the result of `get_config`."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by configuration."""
        return type(self).from_config, (self.get_config(),)

    def save(self, folder: str | Path) -> None:
        """Write spm.model, added_tokens.json and tokenizer_config.json, named as Hugging Face does.

        added_tokens.json holds [MASK] where the model has no piece for it.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "tokenizer_class": "DebertaV2Tokenizer",
            "do_lower_case": False,
            "split_by_punct": False,
            "vocab_type": "spm",
        }
        partial = folder / f"{MODEL_FILE}.partial"
        try:
            partial.write_bytes(self._model)
            partial.replace(folder / MODEL_FILE)
        finally:
            partial.unlink(missing_ok=True)
        if self.mask_id == self._num_pieces:
            write_text(folder / ADDED_FILE, json.dumps({MASK: self.mask_id}) + "\n")
        write_text(folder / CONFIG_FILE, json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> "SentencePieceTokenizer":
        """Read a folder written by `save`, or one of a Hugging Face DeBERTa v2 or v3 checkpoint.

        Raises:
            ValueError: if spm.model is missing or broken.
        """
        return cls(Path(folder) / MODEL_FILE)


def sentencepiece() -> Any:
    """Import the package, or say how to get it."""
    try:
        return importlib.import_module("sentencepiece")
    except ImportError as error:
        raise ImportError(
            "Expected the package sentencepiece (pip install sentencepiece) for the tokenizer of "
            "DeBERTa v2 and v3. Received: no module named sentencepiece"
        ) from error


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise ValueError(f"Expected the path of a SentencePiece model. Received: {str(file)!r}")
    return file.read_bytes()


def _processor(model: bytes) -> Any:
    library = sentencepiece()
    try:
        processor = library.SentencePieceProcessor()
        processor.load_from_serialized_proto(model)
    except (RuntimeError, OSError, ValueError) as error:
        raise ValueError(
            f"Expected the content of a SentencePiece model. Received: {len(model)} bytes that "
            "are not"
        ) from error
    return processor
