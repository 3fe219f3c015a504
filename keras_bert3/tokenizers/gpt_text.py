"""From text to the words that GPT-1's byte-pair encoding takes apart.

Source of the rules: openai/finetune-transformer-lm `text_utils.py`. In this order:

1. repair broken characters (ftfy);
2. write dashes as "-", an ellipsis as "...", an acute accent as an apostrophe; put spaces around
   runs of one of eighteen marks; keep line ends as words, make one space of other whitespace;
3. cut into words by spaCy's English rules;
4. lower-case each word.
"""

import functools
import importlib
import re
from collections.abc import Callable

from keras_bert3.tokenizers import basic_tokenization

STANDARDIZATIONS = ("spacy", "bert")
NEW_LINE = "\n "
"""A line end, as spaCy leaves it: with the space that follows."""

_REPLACED = str.maketrans(
    {"\u2014": "-", "\u2013": "-", "\u2015": "-", "\u2026": "...", "\u00b4": "'"}
)
# Runs of one mark each. The published pattern means the backslash too, but does not match it.
_MARKS = re.compile("(" + "|".join(f"{re.escape(mark)}+" for mark in '-~!";?+,)(/*[]}{|_') + ")")
_LINE_ENDS = re.compile(r"\s*\n\s*")
_SPACES = re.compile(r"[^\S\n]+")


def standardize(text: str) -> str:
    """Apply step 2 of the rules.

    Example: `standardize("well\u2014yes!!")` is `"well - yes !!"`.
    """
    text = _MARKS.sub(r" \1 ", text.translate(_REPLACED))
    text = _LINE_ENDS.sub(" \n ", text)
    return _SPACES.sub(" ", text).strip()


def splitter(text_standardization: str) -> Callable[[str], list[str]]:
    """Return a function from a text to its words.

    Args:
        text_standardization: `spacy`, the published rules, which need the extra `gpt`; or `bert`,
            the splitting of BERT's basic tokenization, which needs nothing and gives other words:
            "isn't" is three of them, not two.

    Raises:
        ValueError: for another name.
        ImportError: for `spacy` without ftfy and spaCy.
    """
    if text_standardization not in STANDARDIZATIONS:
        raise ValueError(
            f"Expected text_standardization among {', '.join(STANDARDIZATIONS)}. "
            f"Received: {text_standardization!r}"
        )
    return _published_splitter() if text_standardization == "spacy" else _bert_words


@functools.cache
def _published_splitter() -> Callable[[str], list[str]]:
    try:
        fix_text = importlib.import_module("ftfy").fix_text
        cut = importlib.import_module("spacy").blank("en").tokenizer
    except ImportError as error:
        raise ImportError(
            "Expected ftfy and spaCy, by which GPT-1's words are cut: pip install "
            f"'keras-bert3[gpt]', or text_standardization='bert' for other words. Received: {error}"
        ) from error

    def words(text: str) -> list[str]:
        return [token.text.lower() for token in cut(standardize(fix_text(text)))]

    return words


@functools.cache
def _bert_stages():
    return (
        basic_tokenization.normalizer(lowercase=True, strip_accents=True),
        basic_tokenization.pre_tokenizer(split_chinese_characters=True),
    )


def _bert_words(text: str) -> list[str]:
    normalizer, pre_tokenizer = _bert_stages()
    folded = normalizer.normalize_str(basic_tokenization.settle_final_sigmas(text))
    return [word for word, _ in pre_tokenizer.pre_tokenize_str(folded)]
