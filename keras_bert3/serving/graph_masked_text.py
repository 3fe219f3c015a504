"""Parts of texts between masks inside a graph; see `tokenizers.masked_text`."""

import numpy as np

from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.tokenizers.masked_text import MARKS, bare

_STARTS_APART = rf"^[\s\p{{Z}}{''.join(MARKS)}]"


def bare_ids(tokenizer) -> np.ndarray | None:
    """For each id that of its piece without the space before it, see `bare`; None if all stay."""
    size = tokenizer.vocabulary_size
    ids = np.array([bare(tokenizer, index) for index in range(size)], "int32")
    return None if (ids == np.arange(size)).all() else ids


def ids_of_parts(parts, owner, tokenize, bare_table: np.ndarray | None):
    """Cut the parts between masks as the whole text would have been.

    Args:
        parts: strings `[n]`.
        owner: integers `[n]`, ascending: the text that each is part of.
        tokenize: from strings to ragged ids.
        bare_table: as `bare_ids` returns.

    Returns:
        Ragged int32 ids, a row for each part.
    """
    tf = tensorflow()

    is_last = owner != tf.concat([owner[1:], [-1]], 0)
    cut = tf.cast(~is_last & tf.strings.regex_full_match(parts, "(?s).* "), tf.int32)
    parts = tf.strings.substr(parts, tf.zeros_like(cut), tf.strings.length(parts) - cut)
    ids = tokenize(parts)
    if bare_table is None:
        return ids
    follows = owner == tf.concat([[-1], owner[:-1]], 0)
    follows &= ~tf.strings.regex_full_match(parts, rf"(?s){_STARTS_APART}.*")
    places = tf.boolean_mask(ids.row_starts(), follows & (ids.row_lengths() > 0))
    firsts = tf.gather(tf.constant(bare_table), tf.gather(ids.values, places))
    ids = ids.with_values(tf.tensor_scatter_nd_update(ids.values, places[:, None], firsts))
    return tf.ragged.boolean_mask(ids, ids >= 0)
