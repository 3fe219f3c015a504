"""WordPiece: BERT's tokenizer."""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from tokenizers import AddedToken, Encoding, Tokenizer, models

from keras_bert3.tokenizers import added_token_files, basic_tokenization
from keras_bert3.tokenizers.added_tokens import check_apart, entries
from keras_bert3.tokenizers.vocabulary import (
    CONTINUATION,
    SPECIAL_TOKENS,
    UNKNOWN,
    Vocabulary,
    checked_text,
    read_vocabulary,
    write_text,
)
from keras_bert3.tokenizers.whole_words import trim

VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
CONFIG_KEYS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "split_chinese_characters",
    "max_word_length": "max_word_length",
    "special_tokens_in_text": "special_tokens_in_text",
}
MEMO_ENTRIES = 2**18
MEMO_CHARACTERS = 32


class WordPieceTokenizer(Vocabulary):
    """Split text into the word pieces of a vocabulary.

    Text is cleaned and cut into words (`basic_tokenization`). Each word is then covered from the
    left by the longest piece of the vocabulary that fits, every piece but the first spelled with a
    leading "##"; a word that cannot be covered becomes one [UNK]. The pieces are those of
    google-research/bert `tokenization.py` (BERT, section 3: "WordPiece embeddings").

    Nothing is truncated, padded or framed by [CLS] and [SEP] here: `packing.pack` does that.

    Args:
        vocabulary: the tokens in the order of their ids, or the path of a vocab.txt.
        lowercase: fold to lower case (uncased models). It belongs to the vocabulary: a cased
            model's text must not be folded.
        strip_accents: decompose characters and drop their accents; None follows `lowercase`.
        split_chinese_characters: treat each CJK ideograph as a word.
        max_word_length: characters in a word beyond which it is [UNK]; 200 in
            google-research/bert, 100 in Hugging Face's tokenizers.
        special_tokens_in_text: read a literal "[MASK]" (any of the five special tokens, in exactly
            this spelling) as that token; otherwise it is ordinary text.
        added_tokens: tokens that are found in a text before its words are, beside letters too, such
            as "[E1]", or dictionaries that say more (see the module `added_tokens`). Their ids
            follow the vocabulary's, but for those that it holds already. Ids are those of Hugging
            Face's tokenizers with the same tokens added.

    Raises:
        ValueError: for a vocabulary that is empty, repeats a token or lacks a special one, or an
            added token that is no such token.

    Example:
    ```python
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able"]
    tokenizer = WordPieceTokenizer(vocabulary)
    tokenizer.tokenize("Unaffable")  # ["un", "##aff", "##able"]
    tokenizer(["Unaffable", "un"])  # [[5, 6, 7], [5]]
    ```
    """

    def __init__(
        self,
        vocabulary: Sequence[str] | str | Path,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese_characters: bool = True,
        max_word_length: int = 200,
        special_tokens_in_text: bool = False,
        added_tokens: Iterable[str | Mapping[str, Any]] = (),
    ) -> None:
        if isinstance(vocabulary, (str, Path)):
            vocabulary = read_vocabulary(vocabulary)
        if max_word_length < 1:
            raise ValueError(f"Expected max_word_length of at least 1. Received: {max_word_length}")
        super().__init__(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_chinese_characters = split_chinese_characters
        self.max_word_length = max_word_length
        self.special_tokens_in_text = special_tokens_in_text
        self.added_tokens = entries(added_tokens)
        self._memo: dict[str, list[int]] = {}
        self._num_pieces = self.vocabulary_size
        self._rust = self._build_rust_tokenizer()
        self._append([token["content"] for token in self.added_tokens])

    def _build_rust_tokenizer(self) -> Tokenizer:
        model = models.WordPiece(
            self._ids,
            unk_token=UNKNOWN,
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=self.max_word_length,
        )
        strip_accents = self.lowercase if self.strip_accents is None else self.strip_accents
        rust = Tokenizer(model)
        rust.normalizer = basic_tokenization.normalizer(self.lowercase, strip_accents)
        rust.pre_tokenizer = basic_tokenization.pre_tokenizer(self.split_chinese_characters)
        check_apart(self.added_tokens, rust.normalizer, self.lowercase)
        if self.special_tokens_in_text:
            exact = [AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS]
            rust.add_special_tokens(exact)
        rust.add_tokens([AddedToken(**token) for token in self.added_tokens])
        return rust

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of [PAD], [UNK], [CLS], [SEP] and [MASK], then of special added tokens."""
        added = (token["content"] for token in self.added_tokens if token["special"])
        return (*super().special_ids, *(self._ids[content] for content in added))

    @overload
    def __call__(self, text: str) -> list[int]: ...

    @overload
    def __call__(self, text: Sequence[str]) -> list[list[int]]: ...

    def __call__(self, text: str | Sequence[str]) -> list[int] | list[list[int]]:
        """Turn a text into its ids, or a list of texts into a list of lists of ids.

        Large batches are much the faster: each distinct stretch between two spaces is worked out
        once, by all processor cores, and short ones are remembered from call to call.

        Args:
            text: one text, or a list or tuple of texts. An empty text has no ids.

        Raises:
            ValueError: for anything that is not str, and for lone surrogates.
        """
        if isinstance(text, (list, tuple)):
            return self._encode_batch([self._checked(one) for one in text])
        return self._encode_batch([self._checked(text)])[0]

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text as strings.

        Example: `tokenizer.tokenize("unaffable!")` is `["un", "##aff", "##able", "!"]` where the
        vocabulary has these.
        """
        return [self._vocabulary[index] for index in self(text)]

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text, cleaned and folded, before they are cut into pieces.

        Example: `tokenizer.split_words("It's  Naïve")` is `["it", "'", "s", "naive"]`.
        """
        words, done, text = [], 0, self._checked(text)
        for index, (start, end) in self.whole_tokens(text):
            words += [*self._split(text[done:start]), self._vocabulary[index]]
            done = end
        return words + self._split(text[done:])

    def _split(self, text: str) -> list[str]:
        normalizer, pre_tokenizer = self._rust.normalizer, self._rust.pre_tokenizer
        normalized = normalizer.normalize_str(text)
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]

    def whole_tokens(self, text: str) -> list[tuple[int, tuple[int, int]]]:
        """Find the added tokens in a text, and the special ones if `special_tokens_in_text`.

        Returns:
            The id of each, and the pair (start, end) of where it stands, without space around it.

        Example: `tokenizer.whole_tokens("the [E1]cat")` is `[(30522, (4, 8))]` where "[E1]" is the
        first added token.
        """
        whole = {self._ids[token["content"]] for token in self.added_tokens}
        whole |= set(super().special_ids) if self.special_tokens_in_text else set()
        if not whole:
            return []
        text = self._checked(text)
        encoding = self._rust.encode(text, add_special_tokens=False)
        pieces = Counter(encoding.word_ids)
        return [
            (index, trim(text, *offsets))
            for index, offsets, word in zip(
                encoding.ids, encoding.offsets, encoding.word_ids, strict=True
            )
            if index in whole and pieces[word] == 1
        ]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text and where each comes from.

        Returns:
            The ids, and as many pairs (start, end): `text[start:end]` is the stretch of the
            untouched text, counted in characters, that became the piece.

        Example: for "α hello" the second pair is `(2, 7)`.
        """
        encoding = self._rust.encode(self._checked(text), add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Join pieces into text: a space between words, none before "##" pieces.

        Case, accents and original spacing are lost; `encode_with_offsets` finds the true text.

        Args:
            ids: token ids, of any integer type.
            skip_special_tokens: leave out [PAD], [CLS], [SEP] and [MASK]; [UNK] always stays.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        skipped = set(self.special_ids) - {self.unknown_id} if skip_special_tokens else set()
        kept = [index for index in map(int, ids) if index not in skipped]
        pieces = (self.id_to_token(index) for index in kept)
        return " ".join(pieces).replace(" " + CONTINUATION, "")

    def _encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Encode texts stretch by stretch: a space always ends a word, so this is exact."""
        if len(self._memo) > MEMO_ENTRIES:
            self._memo = {}
        memo = self._memo
        rows = [text.split(" ") for text in texts]
        distinct = {stretch for row in rows for stretch in row}
        known = {stretch: memo[stretch] for stretch in distinct if stretch in memo}
        fresh = list(distinct.difference(known))
        encodings: list[Encoding] = self._rust.encode_batch_fast(fresh, add_special_tokens=False)
        for stretch, encoding in zip(fresh, encodings, strict=True):
            known[stretch] = encoding.ids
            if len(stretch) <= MEMO_CHARACTERS:
                memo[stretch] = known[stretch]
        look_up = known.__getitem__
        return [list(itertools.chain.from_iterable(map(look_up, row))) for row in rows]

    def _checked(self, text: object) -> str:
        """Return the text ready for the Rust pipeline, or raise ValueError."""
        checked = checked_text(text)
        return basic_tokenization.settle_final_sigmas(checked) if self.lowercase else checked

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, the whole vocabulary among them."""
        return {
            "vocabulary": self._vocabulary[: self._num_pieces],
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese_characters": self.split_chinese_characters,
            "max_word_length": self.max_word_length,
            "special_tokens_in_text": self.special_tokens_in_text,
            "added_tokens": [dict(token) for token in self.added_tokens],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "WordPieceTokenizer":
        """Build a tokenizer from the result of `get_config`."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by configuration."""
        return type(self).from_config, (self.get_config(),)

    def save(self, folder: str | Path) -> None:
        """Write vocab.txt and tokenizer_config.json into a folder, making it where needed.

        The settings are spelled as in Hugging Face's BERT checkpoints, with two more of ours; added
        tokens stand among them, none in vocab.txt.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"tokenizer_class": "BertTokenizer"}
        settings |= {key: getattr(self, name) for key, name in CONFIG_KEYS.items()}
        settings |= added_token_files.settings(self.added_tokens, self._ids)
        pieces = self._vocabulary[: self._num_pieces]
        write_text(folder / VOCABULARY_FILE, "".join(f"{token}\n" for token in pieces))
        write_text(folder / CONFIG_FILE, json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> "WordPieceTokenizer":
        """Read a folder written by `save`, or one of a Hugging Face BERT checkpoint.

        A setting the file leaves out has the default of the constructor. The file itself must be
        there, since nothing else tells a cased vocabulary from an uncased one.

        Raises:
            ValueError: when vocab.txt or tokenizer_config.json is missing, or for added tokens as
                `added_token_files.read`.

        Example: `WordPieceTokenizer.load("bert-base-cased").lowercase` is False.
        """
        folder = Path(folder)
        if not (folder / CONFIG_FILE).is_file():
            raise ValueError(
                f"Expected a folder with {CONFIG_FILE}. Received: {str(folder)!r} without it"
            )
        settings = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        known = {name: settings[key] for key, name in CONFIG_KEYS.items() if key in settings}
        vocabulary = read_vocabulary(folder / VOCABULARY_FILE)
        return cls(vocabulary, added_tokens=added_token_files.read(folder, vocabulary), **known)
