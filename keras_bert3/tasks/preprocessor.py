"""From strings to the tensors a backbone takes."""

import inspect
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
        max_sequence_length: where `sequence_length` is None, the length that longer inputs are
            truncated to; None truncates nothing.
        pad_to_multiple_of: where `sequence_length` is None, lengths are rounded up to such a
            multiple: JAX compiles a program for each.

    Example:
        >>> Preprocessor(tokenizer, 128)(["a text", "another"])["token_ids"].shape
        (2, 128)
    """

    def __init__(
        self,
        tokenizer,
        sequence_length: int | None = None,
        max_sequence_length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ):
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.max_sequence_length = max_sequence_length
        self.pad_to_multiple_of = pad_to_multiple_of

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
            **self._limits(),
        )

    def _limits(self) -> dict[str, int | None]:
        """What holds where the length is the batch's own."""
        if self.sequence_length is not None:
            return {}
        return {
            "max_sequence_length": self.max_sequence_length,
            "pad_to_multiple_of": self.pad_to_multiple_of,
        }

    def get_config(self) -> dict:
        """The constructor's arguments, less the tokenizer, which is saved in its own files."""
        lengths = {
            "sequence_length": self.sequence_length,
            "max_sequence_length": self.max_sequence_length,
            "pad_to_multiple_of": self.pad_to_multiple_of,
        }
        taken = inspect.signature(type(self).__init__).parameters
        return {name: value for name, value in lengths.items() if name in taken}


def as_texts(x):
    """Bring texts to the forms that `is_text` knows; leave everything else as it is.

    A column of a table (pandas, polars) becomes an array; a list of pairs of texts becomes a pair
    of lists.
    """
    if type(x).__name__ == "Series" and hasattr(x, "to_numpy"):
        return as_texts(x.to_numpy())
    if isinstance(x, tuple) and len(x) == 2:
        first, second = as_texts(x[0]), as_texts(x[1])
        return (first, second) if is_text(first) and is_text(second) else x
    if isinstance(x, list) and x and all(map(_is_one_pair, x)):
        return [row[0] for row in x], [row[1] for row in x]
    return x


def _is_one_pair(row) -> bool:
    return isinstance(row, tuple) and len(row) == 2 and all(isinstance(part, str) for part in row)


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


def is_nested_text(x) -> bool:
    """Whether `x` is a list or tuple whose first part is a list or tuple of strings."""
    return isinstance(x, list | tuple) and any(
        isinstance(part, list | tuple) and len(part) > 0 and isinstance(part[0], str)
        for part in x[:1]
    )
