"""What the data modules ask of a tokenizer; `WordPieceTokenizer` has all of it."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class CorpusTokenizer(Protocol):
    """Turns sentences into ids."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens in the order of their ids."""
        ...

    def __call__(self, texts: list[str], /) -> list[list[int]]:
        """Give the ids of each text, without special tokens."""
        ...


class PretrainingTokenizer(Protocol):
    """Names the tokens that a batch is made with."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens in the order of their ids."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens V."""
        ...

    @property
    def pad_id(self) -> int:
        """Id of [PAD]."""
        ...

    @property
    def cls_id(self) -> int:
        """Id of [CLS]."""
        ...

    @property
    def sep_id(self) -> int:
        """Id of [SEP]."""
        ...

    @property
    def mask_id(self) -> int:
        """Id of [MASK]."""
        ...

    @property
    def special_ids(self) -> Any:
        """Ids that are never predicted."""
        ...

    @property
    def is_continuation(self) -> np.ndarray:
        """Bool [V], ids that continue a word."""
        ...
