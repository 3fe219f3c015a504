"""Added tokens in the files of Hugging Face's tokenizers; see `added_tokens`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert3.tokenizers.added_tokens import entries
from keras_bert3.tokenizers.vocabulary import SPECIAL_TOKENS

FAST_FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
ADDED_FILE, SPECIAL_FILE = "added_tokens.json", "special_tokens_map.json"
DECODER = "added_tokens_decoder"
"""Their entry in tokenizer_config.json: from ids, as text, to tokens."""
_Numbered = tuple[Path, int, dict[str, Any]]
_SINGLE = tuple(f"{name}_token" for name in "bos eos unk sep pad cls mask".split())
_LISTS = ("additional_special_tokens", "extra_special_tokens")


def settings(tokens: Sequence[Mapping[str, Any]], ids: Mapping[str, int]) -> dict[str, Any]:
    """Write tokens as tokenizer_config.json holds them; no entries for none."""
    if not tokens:
        return {}
    special = [token["content"] for token in tokens if token["special"]]
    numbered = {str(ids[token["content"]]): dict(token) for token in tokens}
    return {DECODER: numbered, _LISTS[0]: special}


def read(folder: Path, vocabulary: Sequence[str]) -> list[dict[str, Any]]:
    """Read the tokens that a folder adds to a vocabulary.

    tokenizer.json goes first, then `added_tokens_decoder` in tokenizer_config.json, then
    added_tokens.json, which has ids alone. A special token that only has a name there must stand in
    the vocabulary.

    Args:
        folder: with any of the files, or none.
        vocabulary: the tokens in the order of their ids.

    Returns:
        As `added_tokens.entries`, in the order of their ids, without BERT's five.

    Raises:
        ValueError: naming the file, for a token that cannot be added, an id that is not the
            vocabulary's or does not go on from it without a gap, and files that disagree.
    """
    ids = {token: index for index, token in enumerate(vocabulary)}
    numbered = list(_numbered(folder))
    found: dict[str, tuple[int, Path]] = {}
    tokens: dict[str, dict[str, Any]] = {}
    for file, index, token in [*numbered, *_named(folder, ids, numbered)]:
        content = token["content"]
        if content not in SPECIAL_TOKENS:
            tokens.setdefault(content, _checked(token, file))
        known, where = found.setdefault(content, (index, file))
        if known != index:
            raise ValueError(
                f"Expected one id for the added token {content!r} in '{where}' and '{file}'. "
                f"Received: {known} and {index}"
            )
    in_order = sorted(found, key=lambda content: found[content][0])
    expected = iter(range(len(ids), len(ids) + len(found)))
    for content in in_order:
        index, file = found[content]
        wanted = ids[content] if content in ids else next(expected)
        if index != wanted:
            raise ValueError(
                f"Expected the id {wanted} for the added token {content!r} in '{file}': that of "
                f"the vocabulary, or else the next after its {len(ids)}. Received: {index}"
            )
    return [tokens[content] for content in in_order if content in tokens]


def _checked(token: Mapping[str, Any], file: Path) -> dict[str, Any]:
    try:
        return entries([token])[0]
    except ValueError as error:
        raise ValueError(f"{error}, in '{file}'") from error


def _numbered(folder: Path) -> Iterator[_Numbered]:
    """Yield the tokens that have ids: file, id, entries."""
    for name, tokens_of in _LAYOUTS.items():
        content = _json(folder / name)
        try:
            for index, token in tokens_of(content):
                yield folder / name, int(index), {"content": token["content"], **token}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"Expected ids and tokens in '{folder / name}'. Received: {error!r}"
            ) from error


def _fast(content: Mapping[str, Any]) -> Iterable[tuple]:
    tokens = content.get("added_tokens") or []
    return [(token["id"], {k: v for k, v in token.items() if k != "id"}) for token in tokens]


def _config(content: Mapping[str, Any]) -> Iterable[tuple]:
    tokens = (content.get(DECODER) or {}).items()
    return [(index, {k: v for k, v in token.items() if k != "__type"}) for index, token in tokens]


def _added(content: Mapping[str, Any]) -> Iterable[tuple]:
    return [(index, {"content": spelling}) for spelling, index in content.items()]


_LAYOUTS = {FAST_FILE: _fast, CONFIG_FILE: _config, ADDED_FILE: _added}


def _named(folder: Path, ids: Mapping[str, int], numbered: list) -> Iterator[_Numbered]:
    """Yield the special tokens that a file gives no id: file, id, entries."""
    known = {*SPECIAL_TOKENS, *(token["content"] for _, _, token in numbered)}
    for file in (folder / CONFIG_FILE, folder / SPECIAL_FILE):
        for token in _names(_json(file)):
            content = token.get("content") if isinstance(token, dict) else token
            if not isinstance(content, str):
                message = f"Expected special tokens as text in '{file}'. Received: {token!r}"
                raise ValueError(message)
            if content in known:
                continue
            if content not in ids:
                raise ValueError(
                    f"Expected an id for the special token {content!r} of '{file}', in "
                    f"{FAST_FILE}, {ADDED_FILE} or {DECODER} of {CONFIG_FILE}. Received: none"
                )
            yield file, ids[content], {"content": content, "special": True}


def _names(content: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the special tokens of a configuration: spellings or dictionaries."""
    for key, value in content.items():
        if key in _SINGLE and value:
            yield value
        elif key in _LISTS and value:
            listed = value.values() if isinstance(value, dict) else value
            yield from filter(None, listed if not isinstance(listed, (str, int)) else [listed])


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"Expected a JSON file at '{file}'. Received: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"Expected a JSON object in '{file}'. Received: {content!r:.40}")
    return content
