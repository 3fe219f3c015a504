"""From strings to the tensors a backbone takes."""

from collections.abc import Sequence

import numpy as np

from keras_bert3.tokenizers.packing import pack


class Preprocessor:
    """Tokenise, truncate and pack texts or pairs of texts.

    Args:
        tokenizer: turns a list of strings into lists of ids, and knows `cls_id`, `sep_id`,
            `pad_id`.
        sequence_length: length of every row, longer inputs are truncated; the longest input's
            length in each batch when None.

    Example:
        >>> Preprocessor(tokenizer, 128)(["a text", "another"])["token_ids"].shape
        (2, 128)
    """

    def __init__(self, tokenizer, sequence_length: int | None = None):
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length

    def __call__(
        self, texts: Sequence[str], second_texts: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return `token_ids`, `segment_ids` and `padding_mask`, each `[b, q]`."""
        first = self.tokenizer(list(texts))
        second = None if second_texts is None else self.tokenizer(list(second_texts))
        return self.pack(first, second)

    def pack(self, first, second=None) -> dict[str, np.ndarray]:
        """Truncate and pack lists of ids as texts would be."""
        return pack(
            first,
            second,
            self.sequence_length,
            cls_id=self.tokenizer.cls_id,
            sep_id=self.tokenizer.sep_id,
            pad_id=self.tokenizer.pad_id,
        )

    def get_config(self) -> dict:
        """The constructor's arguments, less the tokenizer, which is saved in its own files."""
        return {"sequence_length": self.sequence_length}


def is_text(x) -> bool:
    """Whether `x` is a string, a list or array of strings, or a pair of such lists."""
    if isinstance(x, str):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "UO" and x.size > 0 and isinstance(x.flat[0], str)
    if is_pair(x):
        return True
    return isinstance(x, list | tuple) and len(x) > 0 and isinstance(x[0], str)


def is_pair(x) -> bool:
    """Whether `x` is two lists of strings: first texts, second texts."""
    return (
        isinstance(x, tuple)
        and len(x) == 2
        and not isinstance(x[0], str)
        and is_text(x[0])
        and is_text(x[1])
    )
