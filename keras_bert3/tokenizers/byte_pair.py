"""Byte-pair encoding with "</w>": GPT-1's tokenizer."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

from tokenizers import models

from keras_bert3.tokenizers import gpt_text
from keras_bert3.tokenizers.byte_pair_files import (
    Merges,
    check_merges,
    read_json_vocabulary,
    read_merges,
    write_merges,
)
from keras_bert3.tokenizers.vocabulary import TokenTable, write_text

END = "</w>"
UNKNOWN = "<unk>"
START, DELIMITER, CLASSIFY = "_start_", "_delimiter_", "_classify_"
TASK_TOKENS = (START, DELIMITER, CLASSIFY)
"""What fine-tuning frames its inputs with (Radford et al. 2018, section 3.3)."""

HUGGINGFACE_FILES = ("vocab.json", "merges.txt")
OPENAI_FILES = ("encoder_bpe_40000.json", "vocab_40000.bpe")
CONFIG_FILE = "tokenizer_config.json"
MEMO_ENTRIES = 2**18


class BytePairTokenizer(TokenTable):
    """Cut text into words, words into pieces.

    Text becomes words as in `gpt_text`. A word starts as its characters, "</w>" on the last; of the
    pairs of neighbours, the one learned first is joined wherever it stands, and again, until no
    pair is known (Sennrich et al. 2016, section 3.2; openai/finetune-transformer-lm
    `text_utils.py`). Pieces that the vocabulary lacks, which are single characters, are <unk>.

    The released vocabulary has no token for padding, for a start or for an end: <unk> (id 0) stands
    on padding and only the padding mask tells it from text. Special tokens follow the vocabulary.

    Args:
        vocabulary: the tokens in the order of their ids, <unk> among them.
        merges: pairs of pieces, in the order in which they were learned.
        text_standardization: how words are cut: `spacy`, as published, or `bert`; see `gpt_text`.
        special_tokens: tokens to put after the vocabulary, such as `TASK_TOKENS`; no text
            contains them.

    Raises:
        ValueError: for a vocabulary that repeats a token, or lacks <unk> or a merged pair.
        ImportError: for `spacy` without the extra `gpt`.

    Example:
    ```python
    merges = [("l", "o"), ("lo", "w</w>")]
    tokenizer = BytePairTokenizer(["<unk>", "l", "o", "w</w>", "lo", "low</w>"], merges, "bert")
    tokenizer("low lo")  # [5, 1, 0]
    ```
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Merges,
        text_standardization: str = "spacy",
        special_tokens: Sequence[str] = (),
    ) -> None:
        self._words = gpt_text.splitter(text_standardization)
        self.text_standardization = text_standardization
        self.merges = [(left, right) for left, right in merges]
        self.special_tokens = tuple(special_tokens)
        self._base = list(vocabulary)
        super().__init__([*self._base, *self.special_tokens])
        self._check()
        self._encoder = {token: index for index, token in enumerate(self._base)}
        self._rust = models.BPE(
            self._encoder, self.merges, unk_token=UNKNOWN, end_of_word_suffix=END
        )
        self._memo: dict[str, list[int]] = {}

    def _check(self) -> None:
        if UNKNOWN not in self._base:
            raise ValueError(f"Expected a vocabulary with {UNKNOWN}. Received: one without it")
        if len(self._ids) != len(self._vocabulary):
            twice = next(t for i, t in enumerate(self._vocabulary) if self._ids[t] != i)
            raise ValueError(f"Expected each token once. Received: {twice!r} twice")
        check_merges(self._ids, self.merges)

    @property
    def unknown_id(self) -> int:
        """The id of <unk>."""
        return self._ids[UNKNOWN]

    pad_id = unknown_id
    """What stands on padding; only the padding mask tells it from an unknown character."""

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the special tokens."""
        return tuple(self._ids[token] for token in self.special_tokens)

    @property
    def start_id(self) -> int:
        """The id of _start_."""
        return self.token_to_id(START)

    @property
    def delimiter_id(self) -> int:
        """The id of _delimiter_."""
        return self.token_to_id(DELIMITER)

    @property
    def classify_id(self) -> int:
        """The id of _classify_."""
        return self.token_to_id(CLASSIFY)

    @overload
    def __call__(self, text: str) -> list[int]: ...

    @overload
    def __call__(self, text: Sequence[str]) -> list[list[int]]: ...

    def __call__(self, text: str | Sequence[str]) -> list[int] | list[list[int]]:
        """Turn a text into its ids, or a list of texts into a list of lists of ids.

        Raises:
            ValueError: for anything that is not str.
        """
        if not isinstance(text, str) and isinstance(text, Sequence):
            return [self(one) for one in text]
        if len(self._memo) > MEMO_ENTRIES:
            self._memo = {}
        memo, ids = self._memo, []
        for word in self.split_words(text):
            if word not in memo:
                memo[word] = self._encode_word(word)
            ids.extend(memo[word])
        return ids

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text, standardised and in lower case."""
        if not isinstance(text, str):
            raise ValueError(f"Expected text as str. Received: {text!r} ({type(text).__name__})")
        return self._words(text)

    def standardize(self, text: str) -> str:
        """Return the words of a text with a space between them: what `decode` gives back."""
        return " ".join(word.strip(" ") for word in self.split_words(text))

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text as strings."""
        return [self._vocabulary[index] for index in self(text)]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Join pieces into text, a space after each word.

        Args:
            ids: token ids, of any integer type.
            skip_special_tokens: leave out the tokens that follow the vocabulary.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        special = set(self.special_ids)
        pieces = []
        for index in map(int, ids):
            token = self.id_to_token(index)
            if index in special:
                token = "" if skip_special_tokens else token + END
            pieces.append(token)
        return "".join(pieces).replace(END, " ").strip(" ")

    def _encode_word(self, word: str) -> list[int]:
        if word == gpt_text.NEW_LINE and "\n" + END in self._encoder:
            return [self._encoder["\n" + END]]
        tokens = self._rust.tokenize(word)
        if " " not in word:
            return [token.id for token in tokens]
        # Published: pieces are joined by spaces, then parted at them, those of the word too.
        joined = " ".join(_slice(word, token.offsets) for token in tokens) + END
        return [self._encoder.get(piece, self.unknown_id) for piece in joined.split(" ")]

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the whole vocabulary among them."""
        return {
            "vocabulary": list(self._base),
            "merges": list(self.merges),
            "text_standardization": self.text_standardization,
            "special_tokens": self.special_tokens,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "BytePairTokenizer":
        """Build a tokenizer from the result of `get_config`."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by configuration."""
        return type(self).from_config, (self.get_config(),)

    def save(self, folder: str | Path) -> None:
        """Write vocab.json, merges.txt and tokenizer_config.json, named as Hugging Face does."""
        settings = {
            "tokenizer_class": "OpenAIGPTTokenizer",
            "unk_token": UNKNOWN,
            "text_standardization": self.text_standardization,
            "special_tokens_after_vocabulary": list(self.special_tokens),
        }
        self._save_files(Path(folder), HUGGINGFACE_FILES)
        write_text(Path(folder) / CONFIG_FILE, json.dumps(settings, indent=2) + "\n")

    def save_openai(self, folder: str | Path) -> None:
        """Write encoder_bpe_40000.json and vocab_40000.bpe, named as OpenAI does.

        These files have no place for special tokens or for the way words are cut.
        """
        self._save_files(Path(folder), OPENAI_FILES)

    def _save_files(self, folder: Path, names: tuple[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / names[0], json.dumps(self._encoder))
        write_merges(folder / names[1], self.merges)

    @classmethod
    def load(cls, folder: str | Path, **overrides: Any) -> "BytePairTokenizer":
        """Read the files of `save` or `save_openai`, released ones among them.

        Args:
            folder: where they are; vocab.json and merges.txt go before OpenAI's.
            overrides: `text_standardization` and `special_tokens`, instead of those stored, which
                are `spacy` and none where no tokenizer_config.json tells.

        Raises:
            ValueError: if the files are missing or broken.

        Example: `BytePairTokenizer.load("model", special_tokens=TASK_TOKENS).start_id` is 40478.
        """
        folder = Path(folder)
        pairs = (HUGGINGFACE_FILES, OPENAI_FILES)
        names = next((p for p in pairs if all((folder / n).is_file() for n in p)), None)
        if names is None:
            raise ValueError(
                f"Expected {' and '.join(HUGGINGFACE_FILES)}, or {' and '.join(OPENAI_FILES)}, in "
                f"'{folder}'. Received: a folder without them"
            )
        settings = {}
        if (folder / CONFIG_FILE).is_file():
            stored = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
            settings["text_standardization"] = stored.get("text_standardization", "spacy")
            settings["special_tokens"] = stored.get("special_tokens_after_vocabulary", ())
        vocabulary, merges = read_json_vocabulary(folder / names[0]), read_merges(folder / names[1])
        return cls(vocabulary, merges, **{**settings, **overrides})


def _slice(word: str, offsets: tuple[int, int]) -> str:
    return word[offsets[0] : offsets[1]]
