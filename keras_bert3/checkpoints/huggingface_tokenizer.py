"""WordPiece tokenizers out of Hugging Face's files."""

from pathlib import Path

from keras_bert3.checkpoints import folders
from keras_bert3.tokenizers import added_token_files
from keras_bert3.tokenizers.vocabulary import read_vocabulary
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

WORD_LENGTH = 100
"""Characters beyond which a word is unknown in Hugging Face's tokenizers."""

# Their settings in tokenizer_config.json, in the normalizer of tokenizer.json, and ours.
_SETTINGS = (
    ("do_lower_case", "lowercase", "lowercase"),
    ("strip_accents", "strip_accents", "strip_accents"),
    ("tokenize_chinese_chars", "handle_chinese_chars", "split_chinese_characters"),
)


def load_word_piece(folder: Path) -> WordPieceTokenizer | None:
    """Load the tokenizer of a folder, with its vocabulary and its way with case and accents.

    The vocabulary comes from vocab.txt or else tokenizer.json; a setting from
    tokenizer_config.json, else from tokenizer.json; added tokens as `added_token_files.read`.

    Returns:
        The tokenizer, or None where the folder has no vocabulary.

    Raises:
        ValueError: if a file is broken, none says whether text is folded to lower case, which
            nothing else can tell, or an added token is none that we can find as they do.
    """
    fast = _read_where_present(folder / "tokenizer.json")
    config = _read_where_present(folder / "tokenizer_config.json")
    model, normalizer = fast.get("model") or {}, fast.get("normalizer") or {}
    if (folder / "vocab.txt").is_file():
        vocabulary = read_vocabulary(folder / "vocab.txt")
    elif "vocab" in model:
        vocabulary = _vocabulary(folder / "tokenizer.json", model["vocab"])
    else:
        return None
    settings = {ours: normalizer[theirs] for _, theirs, ours in _SETTINGS if theirs in normalizer}
    settings |= {ours: config[theirs] for theirs, _, ours in _SETTINGS if theirs in config}
    if "lowercase" not in settings:
        raise ValueError(
            f"Expected tokenizer_config.json in '{folder}' to say whether text is folded to lower "
            "case (do_lower_case), or preprocessor=None. Received: a vocabulary alone"
        )
    word_length = model.get("max_input_chars_per_word", WORD_LENGTH)
    settings["max_word_length"] = config.get("max_word_length", word_length)
    settings["special_tokens_in_text"] = config.get("special_tokens_in_text", False)
    settings["added_tokens"] = added_token_files.read(folder, vocabulary)
    return WordPieceTokenizer(vocabulary, **settings)


def _read_where_present(file: Path) -> dict:
    return folders.read_json(file) if file.is_file() else {}


def _vocabulary(file: Path, ids: dict[str, int]) -> list[str]:
    """Order the tokens of tokenizer.json by their ids, which must be 0 to V - 1."""
    tokens = sorted(ids, key=lambda token: ids[token])
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"Expected ids 0 to {len(tokens) - 1} in '{file}'. Received: gaps")
    return tokens
