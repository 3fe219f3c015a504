"""The tokenizers of DeBERTa folders: SentencePiece, byte-level byte pairs, or word pieces."""

from pathlib import Path
from typing import Any

from keras_bert3.checkpoints import folders, microsoft_tokenizer
from keras_bert3.checkpoints.huggingface_tokenizer import load_word_piece
from keras_bert3.tokenizers import added_token_files, byte_level_byte_pair, sentence_piece
from keras_bert3.tokenizers.byte_level_byte_pair import ByteLevelBytePairTokenizer
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.vocabulary import MASK, Vocabulary

# What transformers can be told and no released model is: ours has no such setting.
_REFUSED = ("do_lower_case", "split_by_punct")


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a folder, told by its files, or None where there is none.

    spm.model goes first, then vocab.json with merges.txt, Microsoft's bpe_encoder.bin, tokenizer
    .json, which transformers 5 writes alone, and last the vocab.txt of models trained on BERT's
    word pieces.

    Raises:
        ValueError: if a file is broken, tokenizer_config.json asks for what no DeBERTa does, or
            tokens were added to pieces, which would then be read as ordinary text.
        ImportError: without the package `sentencepiece`, for models that need it.
    """
    tokenizer = _of_files(folder)
    if isinstance(tokenizer, (SentencePieceTokenizer, ByteLevelBytePairTokenizer)):
        _check_added(folder, tokenizer)
    return tokenizer


def _of_files(folder: Path) -> Any:
    if (folder / sentence_piece.MODEL_FILE).is_file():
        _check_settings(folder)
        return SentencePieceTokenizer.load(folder)
    if all((folder / name).is_file() for name in byte_level_byte_pair.FILES):
        return ByteLevelBytePairTokenizer.load(folder)
    if (folder / microsoft_tokenizer.FILE).is_file():
        return microsoft_tokenizer.load_byte_level(folder)
    if (folder / "tokenizer.json").is_file():
        content = folders.read_json(folder / "tokenizer.json")
        kind = (content.get("model") or {}).get("type")
        if kind == "Unigram":
            _check_settings(folder)
            return _of_pieces(content, folder)
        if kind == "BPE":
            return _of_merges(content, folder)
    return load_word_piece(folder)


def _check_added(folder: Path, tokenizer: Vocabulary) -> None:
    added = [token["content"] for token in added_token_files.read(folder, tokenizer.vocabulary)]
    if added:
        raise ValueError(
            f"Expected no tokens added to the vocabulary of a {type(tokenizer).__name__}, or "
            f"preprocessor=None. Received: {', '.join(added[:5])} in '{folder}'"
        )


def _check_settings(folder: Path) -> None:
    file = folder / sentence_piece.CONFIG_FILE
    settings = folders.read_json(file) if file.is_file() else {}
    for name in _REFUSED:
        if settings.get(name):
            raise ValueError(
                f"Expected {name} to be false in '{file}', as in every released DeBERTa. "
                f"Received: {settings[name]!r}"
            )


def _of_pieces(content: dict, folder: Path) -> SentencePieceTokenizer:
    """SentencePiece from tokenizer.json; the text is normalised as in the released models."""
    from keras_bert3.tokenizers.sentence_piece_model import model_of_pieces

    file = folder / "tokenizer.json"
    try:
        pieces = [(str(piece), float(score)) for piece, score in content["model"]["vocab"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Expected pieces and scores in '{file}'. Received: {error}") from error
    tokenizer = SentencePieceTokenizer(model_of_pieces(pieces, controls=[MASK]))
    added = _added_tokens(content)
    if added.get(MASK, tokenizer.mask_id) != tokenizer.mask_id:
        raise ValueError(
            f"Expected {MASK} right after the {len(pieces)} pieces in '{file}'. "
            f"Received: id {added[MASK]}"
        )
    return tokenizer


def _of_merges(content: dict, folder: Path) -> ByteLevelBytePairTokenizer:
    file, model = folder / "tokenizer.json", content["model"]
    ids = {**_added_tokens(content), **(model.get("vocab") or {})}
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"Expected ids 0 to {len(tokens) - 1} in '{file}'. Received: others")
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    prefix = bool((content.get("pre_tokenizer") or {}).get("add_prefix_space", False))
    return ByteLevelBytePairTokenizer(tokens, [(left, right) for left, right in pairs], prefix)


def _added_tokens(content: dict) -> dict[str, int]:
    return {token["content"]: token["id"] for token in content.get("added_tokens") or []}
