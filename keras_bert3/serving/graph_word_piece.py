"""WordPiece as a TensorFlow graph of core operations, equal to `WordPieceTokenizer`.

    text --UnicodeDecode--> code points --table--> symbols --trie--> pieces

Every character of a batch is treated at once: from each, the trie finds the longest piece that
could begin there; then each word hops from its first character to where the piece ends, and on,
until it ends itself. No operation of tensorflow-text is needed, so any server can run it.
"""

from typing import Any, NamedTuple

from keras_bert3.serving import code_points, piece_trie, symbol_table
from keras_bert3.serving.graph_characters import GraphCharacters
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_pieces import GraphTokenizer, Pieces
from keras_bert3.tokenizers.vocabulary import CONTINUATION
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer


class Words(NamedTuple):
    """Words of a batch of texts, counted from 1; 0 is for what stands before the first.

    Args:
        owner: int32 `[n]`, the word of each character.
        starts: bool `[n]`, whether a word begins at it.
        ends: int64 `[w + 1]`, the character after each word's last.
        too_long: bool `[w + 1]`, whether a word has more characters than a word may.
    """

    owner: Any
    starts: Any
    ends: Any
    too_long: Any


class GraphWordPiece(GraphTokenizer):
    """Cut texts into the ids of a `WordPieceTokenizer`, inside a `tf.function`.

    A literal "[SEP]" or "[MASK]" in a text is text, whatever `special_tokens_in_text` says: whoever
    sends strings to a server cannot put special tokens into them.

    Args:
        tokenizer: the tokenizer to equal, of any settings and vocabulary but without added tokens,
            for which there is no graph: their tasks are served by `tokens` alone.

    Call arguments:
        texts: string `[b]`, UTF-8. Anything else ends the call with InvalidArgument.

    Returns:
        A ragged int32 tensor `[b, None]`.

    Raises:
        ValueError: for a tokenizer with added tokens.

    Example:
        >>> GraphWordPiece(tokenizer)(tf.constant(["Unaffable!"])).to_list()
        [[5, 6, 7, 8]]
    """

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        if tokenizer.added_tokens:
            found = ", ".join(token["content"] for token in tokenizer.added_tokens)
            raise ValueError(f"Expected a tokenizer without added tokens. Received: {found}")
        accents = tokenizer.strip_accents
        accents = tokenizer.lowercase if accents is None else accents
        points = code_points.probe(tokenizer.lowercase, accents, tokenizer.split_chinese_characters)
        pieces = [(text, index) for index, text in enumerate(tokenizer.vocabulary)]
        mark = CONTINUATION
        self.trie = piece_trie.build(
            [piece for piece in pieces if not piece[0].startswith(mark)],
            [(text[len(mark) :], index) for text, index in pieces if text.startswith(mark)],
        )
        self.characters = GraphCharacters(points, self.trie.symbols, self.trie.other)
        self.unknown_id = tokenizer.unknown_id
        self.max_word_length = tokenizer.max_word_length

    def _pieces(self, texts) -> Pieces:
        tf = tensorflow()

        characters = self.characters(texts)
        words = find_words(characters.symbols, self.max_word_length)
        lengths, ids = self._longest_pieces(characters.symbols, words.starts)
        reached = _hop(characters.symbols, lengths, words)
        failures = tf.cast(reached & (lengths == 0), tf.int32)
        failed = tf.math.unsorted_segment_max(failures, words.owner, tf.size(words.ends)) > 0
        is_known = tf.gather(~(failed | words.too_long), words.owner)
        kept = tf.where((reached & is_known) | (words.starts & ~is_known))[:, 0]
        is_known = tf.gather(is_known, kept)
        piece_ends = kept + tf.cast(tf.gather(lengths, kept), tf.int64)
        word_ends = tf.gather(words.ends, tf.gather(words.owner, kept))
        last = tf.where(is_known, piece_ends, word_ends) - 1
        return Pieces(
            ids=tf.where(is_known, tf.gather(ids, kept), self.unknown_id),
            rows=tf.gather(characters.rows, kept),
            starts=tf.gather(characters.places, kept),
            ends=tf.gather(characters.places, last) + 1,
        )

    def _longest_pieces(self, symbols, starts):
        """Return the length and id of the longest piece at each character; 0 and -1 for none."""
        tf = tensorflow()

        trie = self.trie
        count = tf.shape(symbols)[0]
        padded = tf.pad(symbols, [[0, trie.depth]])
        is_space = symbols == symbol_table.SPACE
        roots = tf.where(starts, piece_trie.WORD, piece_trie.CONTINUATION)
        nodes = tf.where(is_space, piece_trie.DEAD, roots)

        def walk(step, nodes, lengths, ids):
            following = tf.gather(trie.base, nodes) + padded[step : step + count]
            is_child = tf.gather(trie.owner, following) == nodes
            nodes = tf.where(is_child, following, piece_trie.DEAD)
            ending = tf.gather(trie.piece, nodes)
            ids = tf.where(ending >= 0, ending, ids)
            return step + 1, nodes, tf.where(ending >= 0, step + 1, lengths), ids

        _, _, lengths, ids = tf.while_loop(
            lambda step, nodes, *_: tf.reduce_any(nodes != piece_trie.DEAD),
            walk,
            (0, nodes, tf.zeros_like(symbols), tf.fill([count], -1)),
            maximum_iterations=trie.depth,
        )
        return lengths, ids


def find_words(symbols, max_word_length: int) -> Words:
    """Find the words."""
    tf = tensorflow()

    is_letter = symbols != symbol_table.SPACE
    starts = is_letter & ~tf.concat([[False], is_letter[:-1]], 0)
    begins = tf.where(starts)[:, 0]
    ends = tf.where(is_letter & ~tf.concat([is_letter[1:], [False]], 0))[:, 0] + 1
    return Words(
        owner=tf.cumsum(tf.cast(starts, tf.int32)),
        starts=starts,
        ends=tf.pad(ends, [[1, 0]]),
        too_long=tf.pad(ends - begins, [[1, 0]]) > max_word_length,
    )


def _hop(symbols, lengths, words: Words):
    """Return which characters pieces begin at, from each word's first as far as there are any."""
    tf = tensorflow()

    def hop(front, reached):
        front = front + tf.cast(tf.gather(lengths, front), tf.int64)
        is_new = (tf.gather(symbols, front) != symbol_table.SPACE) & ~tf.gather(reached, front)
        front = tf.boolean_mask(front, is_new)
        updates = tf.ones_like(front, tf.bool)
        return front, tf.tensor_scatter_nd_update(reached, front[:, None], updates)

    begins = tf.where(words.starts & ~tf.gather(words.too_long, words.owner))[:, 0]
    _, reached = tf.while_loop(
        lambda front, reached: tf.size(front) > 0,
        hop,
        (begins, words.starts),
        shape_invariants=(tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return reached
