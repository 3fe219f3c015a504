"""What preprocessors share that cut long texts into windows and never cut anything off."""

import numpy as np

from keras_bert3.data.windows import padded_length
from keras_bert3.tasks.preprocessor import Preprocessor


class WindowPreprocessor(Preprocessor):
    """A `Preprocessor` of rows of at most `sequence_length` that refuses to lose tokens."""

    def __init__(self, tokenizer, sequence_length: int):
        super().__init__(tokenizer, sequence_length)
        self.longest_row = sequence_length

    def pack(self, first, second=None) -> dict[str, np.ndarray]:
        """Pack lists of ids that fit.

        Raises:
            ValueError: for a text that does not, with the number of tokens it would lose.
        """
        special = 2 if second is None else 3
        others = [()] * len(first) if second is None else second
        for number, (ids, more) in enumerate(zip(first, others, strict=True)):
            lost = len(ids) + len(more) + special - self.longest_row
            if lost > 0:
                raise ValueError(
                    f"Expected texts that fit in {self.longest_row} tokens; fit, evaluate and "
                    f"predict read longer ones in windows. Received: text {number}, which would "
                    f"lose {lost} tokens"
                )
        return super().pack(first, second)

    def pack_rows(self, first, second=None, length: int | None = None) -> dict[str, np.ndarray]:
        """Pack windows, padded to `length`, or to 32, 64, 128 ... as the longest needs.

        Returns:
            `token_ids`, `segment_ids` and `padding_mask`, each `[b, q]`.
        """
        others = [()] * len(first) if second is None else second
        special = 2 if second is None else 3
        if length is None:
            longest = max(len(ids) + len(more) for ids, more in zip(first, others, strict=True))
            length = padded_length(longest + special, self.longest_row)
        return Preprocessor(self.tokenizer, length).pack(first, second)

    @property
    def element_spec(self) -> dict[str, tuple[tuple[int], str]]:
        """Shape and dtype of each input of a row of full length."""
        names = ("token_ids", "int32"), ("segment_ids", "int32"), ("padding_mask", "bool")
        return {name: ((self.longest_row,), dtype) for name, dtype in names}
