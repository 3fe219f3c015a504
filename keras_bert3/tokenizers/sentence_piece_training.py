"""Learning a SentencePiece model from text."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

from keras_bert3.tokenizers.sentence_piece import (
    FIRST_PIECES,
    SentencePieceTokenizer,
    sentencepiece,
)
from keras_bert3.tokenizers.vocabulary import checked_text

NUM_THREADS = 4
"""A fixed number: sums of floats depend on how the work is divided."""
MAX_LINE_BYTES = 4192
"""Longer stretches are cut at spaces; SentencePiece would leave them out."""


def train_sentence_piece(
    documents: Iterable[str],
    vocabulary_size: int,
    character_coverage: float = 0.999997,
) -> SentencePieceTokenizer:
    """Learn a unigram model; the same text gives the same tokenizer, always.

    Pieces and their probabilities are found by expectation maximisation, and the least useful are
    dropped until `vocabulary_size` are left (Kudo 2018, section 3.2). Settings are those stored in
    the released spm.model of DeBERTa v3: NFKC, numbers apart from letters, pieces of at most 32
    characters, a piece for each byte, and [PAD] 0, [CLS] 1, [SEP] 2, [UNK] 3; [MASK] comes last.

    Args:
        documents: texts; read once.
        vocabulary_size: tokens at most, special ones and the 256 bytes included (128001 as
            released).
        character_coverage: share of the text whose characters get a piece of their own; the rest,
            the rarest characters, are spelled in bytes.

    Raises:
        ValueError: when there is no text to learn from, or `vocabulary_size` has no room for the
            characters.
        ImportError: without the package `sentencepiece`.

    Example:
    ```python
    train_sentence_piece(["low lower lowest"] * 9, 280).tokenize("lowest")
    ```
    """
    lines = _lines(documents)
    first = next(lines, None)
    if first is None:
        raise ValueError("Expected documents with at least one word. Received: none")
    try:
        model = learned_model(
            _chain(first, lines),
            vocab_size=vocabulary_size - 1,
            character_coverage=character_coverage,
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"Expected a vocabulary_size with room for 4 special tokens, 256 bytes, the characters "
            f"and [MASK]. Received: {vocabulary_size} ({reason[:200]})"
        ) from error
    return SentencePieceTokenizer(model)


def learned_model(lines: Iterator[str], **settings: Any) -> bytes:
    """Run the trainer of `sentencepiece` in the layout of DeBERTa; the content of an spm.model.

    Args:
        lines: stretches of text.
        settings: of the trainer, beside or instead of those of DeBERTa v3.
    """
    model = io.BytesIO()
    sentencepiece().SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, **{**_settings(), **settings}
    )
    return model.getvalue()


def _settings() -> dict[str, Any]:
    pad, cls, sep, unknown = FIRST_PIECES
    return {
        "model_type": "unigram",
        "normalization_rule_name": "nmt_nfkc",
        "max_sentencepiece_length": 32,
        "byte_fallback": True,
        "hard_vocab_limit": False,
        "shuffle_input_sentence": False,
        "num_threads": NUM_THREADS,
        "minloglevel": 2,
        "pad_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "unk_id": 3,
        "pad_piece": pad,
        "bos_piece": cls,
        "eos_piece": sep,
        "unk_piece": unknown,
    }


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _lines(documents: Iterable[str]) -> Iterator[str]:
    """Yield the lines of texts, none empty, those that are too long in parts."""
    if isinstance(documents, str):
        raise ValueError("Expected an iterable of texts. Received: a single str")
    for document in documents:
        for line in checked_text(document).splitlines():
            yield from _parts(line.strip())


def _parts(line: str) -> Iterator[str]:
    """Cut a line at spaces into parts that SentencePiece reads."""
    while len(line.encode("utf-8")) > MAX_LINE_BYTES:
        part = line.encode("utf-8")[:MAX_LINE_BYTES].decode("utf-8", "ignore")
        space = part.rfind(" ")
        part = part[:space] if space > 0 else part
        yield part
        line = line[len(part) :].strip()
    if line:
        yield line
