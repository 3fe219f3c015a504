"""From rows of an example table to padded sequences with special tokens, a whole batch at once."""

import numpy as np

from keras_bert3.data.tokenizer_protocols import PretrainingTokenizer


def assemble(
    tokens: np.ndarray, examples: np.ndarray, sequence_length: int, tokenizer: PretrainingTokenizer
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay out [CLS] A [SEP] B [SEP] (or [CLS] A [SEP]) for each row of an example table.

    Args:
        tokens: the flat token array of the corpus.
        examples: int [b, 5], rows of the table.
        sequence_length: length t; every row fits in.
        tokenizer: gives the ids of [CLS], [SEP] and [PAD].

    Returns:
        `token_ids` int32, `segment_ids` int32 and `padding_mask` bool, each [b, t].
    """
    first_begin, first_length, second_begin, second_length = examples[:, :4].T[:, :, None]
    place = np.arange(sequence_length)
    first_end = 1 + first_length
    second_end = first_end + 1 + second_length
    in_second = (place > first_end) & (place < second_end)
    is_text = ((place > 0) & (place < first_end)) | in_second
    source = place + np.where(in_second, second_begin - first_end - 1, first_begin - 1)
    ends = np.where(second_length > 0, second_end, first_end)
    token_ids = np.full(is_text.shape, tokenizer.pad_id, np.int32)
    token_ids[is_text] = tokens[source[is_text]]
    token_ids[:, 0] = tokenizer.cls_id
    rows = np.arange(len(examples))
    token_ids[rows, first_end[:, 0]] = tokenizer.sep_id
    token_ids[rows, ends[:, 0]] = tokenizer.sep_id
    padding_mask = place <= ends
    return token_ids, ((place > first_end) & padding_mask).astype(np.int32), padding_mask
