"""Tokens added to a vocabulary of word pieces: found in a text before its words are.

Each is a dictionary of the entries of Hugging Face's `AddedToken`:

| entry              | meaning                                                                    |
|--------------------|----------------------------------------------------------------------------|
| `content`          | its spelling                                                               |
| `special`          | `decode` leaves it out, and masking never hides it                         |
| `normalized`       | looked for in cleaned and folded text, so in any case where text is        |
|                    | folded; else in its exact spelling. True unless it is special              |
| `lstrip`, `rstrip` | its offsets take in the space before it, or after it; ids stay the same    |
| `single_word`      | never true: beside an ideograph, libraries disagree on what is a word      |
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenizers.normalizers import Normalizer

from keras_bert3.tokenizers.vocabulary import SPECIAL_TOKENS, checked_text

FLAGS = ("lstrip", "normalized", "rstrip", "single_word", "special")
_SIGMAS = frozenset("Σσς")


def entries(tokens: Iterable[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write tokens out with all their entries.

    Args:
        tokens: spellings, or dictionaries with `content` and any other entries.

    Raises:
        ValueError: for an entry of another name or type, a token with whitespace in it, one of
            BERT's five, or a `single_word`.

    Example: `entries(["[E1]"])[0]["normalized"]` is True.
    """
    if isinstance(tokens, str):
        raise ValueError(f"Expected a list of added tokens. Received: the text {tokens!r}")
    return [_entry(token) for token in tokens]


def _entry(token: str | Mapping[str, Any]) -> dict[str, Any]:
    given = dict(token) if isinstance(token, Mapping) else {"content": token}
    content = checked_text(given.pop("content", None))
    flags = {**dict.fromkeys(FLAGS, False), "normalized": not given.get("special"), **given}
    if set(flags) != set(FLAGS) or not all(isinstance(flag, bool) for flag in flags.values()):
        raise ValueError(
            f"Expected an added token of `content` and any of {', '.join(FLAGS)}, true or false. "
            f"Received: {token!r}"
        )
    if content.split() != [content]:
        raise ValueError(f"Expected added tokens without whitespace. Received: {content!r}")
    if content in SPECIAL_TOKENS:
        raise ValueError(
            f"Expected added tokens beside {', '.join(SPECIAL_TOKENS)}, which texts may hold with "
            f"special_tokens_in_text=True. Received: {content!r}"
        )
    if flags["single_word"]:
        raise ValueError(
            f"Expected added tokens with single_word=False. Received: {content!r} with True"
        )
    return {"content": content, **flags}


def check_apart(tokens: Sequence[Mapping[str, Any]], normalizer: Normalizer, lowercase: bool):
    """Refuse tokens that no text holds, or that are not told apart in texts.

    Args:
        tokens: of `entries`.
        normalizer: cleans text, and folds it with `lowercase`.
        lowercase: whether a capital sigma becomes what its neighbours in a text make of it.

    Raises:
        ValueError: for a sigma in folded text, a token of which nothing is left, or two that become
            the same.
    """
    forms = collections.defaultdict(list)
    for token in tokens:
        content, is_folded = token["content"], token["normalized"]
        if lowercase and not _SIGMAS.isdisjoint(content):
            raise ValueError(
                f"Expected added tokens without a sigma where text is folded. Received: {content!r}"
            )
        form = normalizer.normalize_str(content) if is_folded else content
        if not form:
            raise ValueError(f"Expected added tokens of visible characters. Received: {content!r}")
        forms[form, is_folded].append(content)
    for alike in forms.values():
        if len(alike) > 1:
            raise ValueError(
                f"Expected added tokens that differ after folding. Received: {', '.join(alike)}"
            )
