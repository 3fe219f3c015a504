"""Texts as GPT-1's fine-tuning frames them (Radford et al. 2018, figure 1); see
`objectives/input_transformations.py`.
"""

import numpy as np

from keras_bert3.objectives import input_transformations as transform
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tokenizers.byte_pair import TASK_TOKENS, BytePairTokenizer

LONGEST = 512
"""Tokens of a row at most where nothing says otherwise: the released position table's."""


class GPTPreprocessor(Preprocessor):
    """Frame a text, or a pair whose order counts; padding stands on the right.

    A text becomes `start text classify`, a pair `start first delimiter second classify`.

    Args:
        tokenizer: a `BytePairTokenizer` with `TASK_TOKENS` after its vocabulary, see
            `with_task_tokens`.
        sequence_length: see `Preprocessor`.
        max_sequence_length: see `Preprocessor`; 512 when None.
        pad_to_multiple_of: see `Preprocessor`.

    Example:
        >>> GPTPreprocessor(tokenizer)(["a text"])["token_ids"]
        [[40478, 246, 3780, 40480]]
    """

    @property
    def special(self) -> transform.SpecialIds:
        """The ids of the special tokens."""
        tokenizer = self.tokenizer
        return transform.SpecialIds(
            tokenizer.start_id, tokenizer.delimiter_id, tokenizer.classify_id
        )

    @property
    def longest(self) -> int:
        """Tokens of a row at most."""
        return self.sequence_length or self.max_sequence_length or LONGEST

    def pack(self, first, second=None) -> dict[str, np.ndarray]:
        """Frame and pad lists of ids: `token_ids` int32 and `padding_mask` bool, `[b, q]`."""
        options = self.special, self.longest
        if second is None:
            rows = [transform.classification(ids, *options) for ids in first]
        else:
            pairs = zip(first, second, strict=True)
            rows = [transform.entailment(a, b, *options) for a, b in pairs]
        return self.pad(rows)

    def pad(self, rows) -> dict[str, np.ndarray]:
        """Pad framed rows on the right, to `sequence_length` or to the longest of them."""
        length = self.sequence_length
        if length is None:
            step = self.pad_to_multiple_of or 1
            longest = max(map(len, rows), default=1)
            length = max(longest, min(-(-longest // step) * step, self.longest))
        packed = transform.pack_rows(rows, self.special, length, self.tokenizer.pad_id)
        return {name: packed[name] for name in ("token_ids", "padding_mask")}


class GPTSimilarityPreprocessor(GPTPreprocessor):
    """Frame pairs without an order, both ways round: arrays `[b, 2, q]`."""

    def pack(self, first, second=None) -> dict[str, np.ndarray]:
        """Frame and pad lists of ids.

        Raises:
            ValueError: for single texts, unless they are empty.
        """
        if second is None and any(first):
            raise ValueError("Expected pairs of texts to compare. Received: single texts")
        second = first if second is None else second
        options = self.special, self.longest
        pairs = zip(first, second, strict=True)
        rows = [row for a, b in pairs for row in transform.similarity(a, b, *options)]
        return {
            name: value.reshape(len(first), 2, value.shape[-1])
            for name, value in self.pad(rows).items()
        }


class GPTMultipleChoicePreprocessor(GPTPreprocessor):
    """Frame a document, a question and each answer: `start document question delimiter answer
    classify`. Too long a document is cut, its question is not.
    """

    def frame(self, contexts, choices) -> dict[str, np.ndarray]:
        """Tokenise, frame and pad: arrays `[b, n, q]`.

        Args:
            contexts: texts, or pairs of a document and a question.
            choices: for each the same number of texts.
        """
        rows = []
        for context, answers in zip(contexts, choices, strict=True):
            parts = (context, "") if isinstance(context, str) else context
            document, question = (self.tokenizer(part) for part in parts)
            ids = self.tokenizer(list(answers))
            rows += transform.multiple_choice(document, question, ids, self.special, self.longest)
        return {
            name: value.reshape(len(contexts), -1, value.shape[-1])
            for name, value in self.pad(rows).items()
        }


def with_task_tokens(tokenizer: BytePairTokenizer) -> BytePairTokenizer:
    """Return a tokenizer with start, delimiter and classify tokens after its vocabulary.

    One that has them already is returned as it is.
    """
    missing = [token for token in TASK_TOKENS if token not in tokenizer.special_tokens]
    if not missing:
        return tokenizer
    special_tokens = (*tokenizer.special_tokens, *missing)
    return BytePairTokenizer(**{**tokenizer.get_config(), "special_tokens": special_tokens})
