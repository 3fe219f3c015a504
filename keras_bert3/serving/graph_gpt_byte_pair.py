"""GPT-1's byte-pair encoding as a graph of core operations."""

import numpy as np

from keras_bert3.serving import code_points, symbol_table
from keras_bert3.serving.graph_byte_pair import GraphMerges
from keras_bert3.serving.graph_characters import GraphCharacters
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_pieces import GraphTokenizer, Pieces
from keras_bert3.tokenizers.byte_pair import END, BytePairTokenizer


class GraphGPTBytePair(GraphTokenizer):
    """Cut texts into the ids of a `BytePairTokenizer`, inside a `tf.function`.

    Args:
        tokenizer: the tokenizer to equal, of `text_standardization="bert"`: ftfy and spaCy, by
            which the published rules cut words, are no graphs.

    Call arguments:
        texts: see `GraphTokenizer`. A word of more than `graph_byte_pair.LONGEST_WORD` characters
            ends the call too.
    """

    def __init__(self, tokenizer: BytePairTokenizer) -> None:
        ids = {token: index for index, token in enumerate(tokenizer.get_config()["vocabulary"])}
        letters = {token.removesuffix(END) for token in ids}
        letters = sorted(letter for letter in letters if len(letter) == 1)
        symbols = {letter: number for number, letter in enumerate(letters, 1)}
        self.characters = GraphCharacters(
            code_points.probe(True, True, True), symbols, len(symbols) + 1
        )
        unknown = tokenizer.unknown_id
        inside, last = ([ids.get(c + end, unknown) for c in letters] for end in ("", END))
        # by symbol, a space's and all other characters' included
        self.inside = np.array([unknown, *inside, unknown], "int32")
        self.last = np.array([unknown, *last, unknown], "int32")
        self.merges = GraphMerges(ids, tokenizer.merges)

    def _pieces(self, texts) -> Pieces:
        tf = tensorflow()

        symbols, rows, places = self.characters(texts)
        is_letter = symbols != symbol_table.SPACE
        starts = is_letter & ~tf.pad(is_letter, [[1, 0]])[:-1]
        is_last = is_letter & ~tf.pad(is_letter, [[0, 1]])[1:]
        words = tf.cumsum(tf.cast(starts, tf.int64)) - 1
        ids = tf.where(is_last, tf.gather(self.last, symbols), tf.gather(self.inside, symbols))
        kept = tf.where(is_letter)[:, 0]
        ids, rows, places, words = (tf.gather(x, kept) for x in (ids, rows, places, words))
        joined = self.merges(ids, words)
        ends = tf.concat([joined.firsts, [tf.size(rows, out_type=tf.int64)]], 0)[1:]
        return Pieces(
            ids=joined.ids,
            rows=tf.gather(rows, joined.firsts),
            starts=tf.gather(places, joined.firsts),
            ends=tf.gather(places, ends - 1) + 1,
        )
