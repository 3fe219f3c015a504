"""Answers cut out of texts inside a graph: what `ExtractiveQA.answer` does, windows included."""

from typing import Any, NamedTuple

from keras_bert3.serving import graph_windows
from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_packing import GraphInputs, of_equal_length, pack
from keras_bert3.serving.graph_pieces import Pieces
from keras_bert3.serving.graph_text import GRAPH_TOKENIZERS, pieces_have_graph
from keras_bert3.tasks.answers import MOST_TOKENS
from keras_bert3.tasks.question_windows import SPECIAL, ExtractiveQAPreprocessor

CANDIDATES = 20
"""Among which an answer's share of the probability is counted."""
_NEVER = -1e300


def answers_have_graph(preprocessor) -> bool:
    """Whether questions and texts can be prepared inside a graph as this preprocessor does."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    return type(preprocessor) is ExtractiveQAPreprocessor and pieces_have_graph(tokenizer)


class Windows(NamedTuple):
    """Questions with parts of their texts, a part a row; see `window_spans`.

    Args:
        inputs: of the network, `[w, q]`.
        questions: int64 `[w]`, the question of each row.
        pieces: of all texts.
        tokens: int64 `[t]`, of the tokens of all parts the piece that each is.
        rows: int64 `[t]`, the row of each.
        columns: int64 `[t]`, its place there.
        may_start: bool `[t]`, whether the row is the one that shows most of its context.
        is_visible: bool `[t]`, whether it stands for something; an answer may start and end there.
    """

    inputs: GraphInputs
    questions: Any
    pieces: Pieces
    tokens: Any
    rows: Any
    columns: Any
    may_start: Any
    is_visible: Any


class GraphAnswers:
    """Reads texts in windows, and finds the likeliest answer to each question.

    Args:
        preprocessor: one for which `answers_have_graph`.
        null_threshold: see `ExtractiveQA`.
    """

    def __init__(
        self, preprocessor: ExtractiveQAPreprocessor, null_threshold: float | None
    ) -> None:
        tokenizer = preprocessor.tokenizer
        self.tokenize = GRAPH_TOKENIZERS[type(tokenizer)](tokenizer)
        self.special = {name: getattr(tokenizer, name) for name in ("cls_id", "sep_id", "pad_id")}
        self.longest_row = preprocessor.longest_row
        self.room = self.longest_row - SPECIAL
        self.stride = preprocessor.stride
        self.max_query_length = preprocessor.max_query_length
        self.null_threshold = null_threshold

    def windows(self, questions, contexts) -> Windows:
        """Cut texts into overlapping parts, each behind its question."""
        tf = tensorflow()

        questions, contexts = of_equal_length(questions, contexts)
        asked = self.tokenize(questions)[:, : self.max_query_length]
        pieces = self.tokenize.pieces(contexts)
        count = tf.shape(contexts)[0]
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(pieces.rows), pieces.rows, count)
        cuts = graph_windows.cut(lengths, self.room - asked.row_lengths(), self.stride)
        parts = cuts.tokens.with_values(tf.gather(pieces.ids, cuts.tokens.values))
        inputs = pack(tf.gather(asked, cuts.owners), parts, self.longest_row, **self.special)
        offset = tf.gather(asked.row_lengths(), cuts.owners) + 2
        columns = cuts.places + tf.gather(offset, cuts.rows)
        tokens = cuts.tokens.values
        is_visible = tf.gather(pieces.starts < pieces.ends, tokens)
        may_start = cuts.is_best & is_visible
        return Windows(
            inputs, cuts.owners, pieces, tokens, cuts.rows, columns, may_start, is_visible
        )

    def answers(self, contexts, windows: Windows, start, end) -> dict[str, Any]:
        """Return the likeliest answer to each question.

        Args:
            contexts: string `[b]`.
            windows: of them.
            start: logits `[w, q]`.
            end: logits `[w, q]`.

        Returns:
            `text`, `start`, `end` (in characters), `score` and `null_margin`, each `[b]`; see
            `Answer`. A margin is finite: the largest float32 where there is nothing to answer from.
        """
        tf = tensorflow()

        count = tf.shape(contexts)[0]
        start, end = tf.cast(start, tf.float64), tf.cast(end, tf.float64)
        null = tf.math.unsorted_segment_min(start[:, 0] + end[:, 0], windows.questions, count)
        scores = _span_scores(windows, start, end)
        questions = tf.gather(windows.questions, windows.rows)
        best, token, width = _likeliest(scores, questions, count)
        is_found = best > _NEVER
        margin = tf.where(is_found, null - best, tf.constant(3.4e38, tf.float64))
        is_null = ~is_found
        if self.null_threshold is not None:
            is_null |= margin > self.null_threshold
        share = self._share(windows, scores, count, null, tf.where(is_null, null, best), is_found)
        nowhere = tf.constant(0, tf.int64)
        first = _look_up(windows.pieces.starts, windows.tokens, token)
        last = _look_up(windows.pieces.ends, windows.tokens, token + width)
        first, last = tf.where(is_null, nowhere, first), tf.where(is_null, nowhere, last)
        return {
            "text": tf.strings.substr(contexts + " ", first, last - first, unit="UTF8_CHAR"),
            "start": first,
            "end": last,
            "score": tf.cast(share, tf.float32),
            "null_margin": tf.cast(margin, tf.float32),
        }

    def _share(self, windows: Windows, scores, count, null, given, is_found):
        """exp(given) / sum exp over the likeliest spans, and over no answer where it is one."""
        tf = tensorflow()

        top = _candidates(windows, scores, count)
        has_null = ~is_found if self.null_threshold is None else tf.ones_like(is_found)
        every = tf.concat([top, tf.where(has_null, null, _NEVER)[:, None]], 1)
        return tf.exp(given - tf.reduce_logsumexp(every, 1))


def _candidates(windows: Windows, scores, count):
    """Scores of the likeliest spans of each row, joined over a question's rows: `[b, CANDIDATES]`.

    Spans of the same characters, such as those of several bytes of one letter, count once.
    """
    tf = tensorflow()

    rows = tf.size(windows.questions)
    table, first = _in_groups(scores, windows.rows, rows)
    top = tf.math.top_k(table, CANDIDATES)
    kept = tf.where(top.values > _NEVER)
    values = tf.gather_nd(top.values, kept)
    row = kept[:, 0]
    place = tf.cast(tf.gather_nd(top.indices, kept), tf.int64)
    token = tf.gather(first, row) + place // MOST_TOKENS
    questions = tf.gather(windows.questions, row)
    starts = tf.gather(windows.pieces.starts, tf.gather(windows.tokens, token))
    ends = tf.gather(windows.pieces.ends, tf.gather(windows.tokens, token + place % MOST_TOKENS))
    span = _numbered(_numbered(questions, starts), ends)
    distinct = tf.reduce_max(tf.pad(span, [[1, 0]], constant_values=-1)) + 1
    values = tf.math.unsorted_segment_max(values, span, distinct)
    questions = tf.math.unsorted_segment_max(questions, span, distinct)
    order = tf.argsort(questions, stable=True)
    values, questions = tf.gather(values, order), tf.gather(questions, order)
    table, _ = _in_groups(values[:, None], questions, count)
    return tf.math.top_k(table, CANDIDATES).values


def _in_groups(scores, groups, count):
    """Scores `[n, k]` as a row for each group, filled up to at least `CANDIDATES`; their begins."""
    tf = tensorflow()

    sizes = tf.math.unsorted_segment_sum(tf.ones_like(groups), groups, count)
    ragged = tf.RaggedTensor.from_row_lengths(scores, sizes, validate=False)
    table = ragged.to_tensor(tf.constant(_NEVER, tf.float64))
    table = tf.reshape(table, [count, tf.shape(table)[1] * tf.shape(scores)[1]])
    table = tf.pad(table, [[0, 0], [0, CANDIDATES]], constant_values=_NEVER)
    return table, tf.cumsum(sizes, exclusive=True)


def _numbered(first, second):
    """Number distinct pairs of numbers from 0: int64 `[n]`."""
    tf = tensorflow()

    return tf.unique(first * 2**32 + second, tf.int64).idx


def _span_scores(windows: Windows, start, end):
    """start_i + end_j of every span of a row, float64 `[t, MOST_TOKENS]`, by first token and width.

    Widths that leave the row, and first tokens of another row's care, never win.
    """
    tf = tensorflow()

    places = tf.stack([windows.rows, windows.columns], 1)
    count = tf.size(windows.rows)
    ends = tf.pad(tf.gather_nd(end, places), [[0, MOST_TOKENS]])
    rows = tf.pad(windows.rows, [[0, MOST_TOKENS]], constant_values=-1)
    following = tf.range(count)[:, None] + tf.range(MOST_TOKENS)
    is_span = tf.gather(rows, following) == windows.rows[:, None]
    scores = tf.gather_nd(start, places)[:, None] + tf.gather(ends, following)
    is_visible = tf.pad(windows.is_visible, [[0, MOST_TOKENS]])
    is_span &= windows.may_start[:, None] & tf.gather(is_visible, following)
    return tf.where(is_span, scores, tf.constant(_NEVER, tf.float64))


def _likeliest(scores, questions, count):
    """The best score of each question, with the first token and the width of its span."""
    tf = tensorflow()

    per_token = tf.reduce_max(scores, 1)
    best = tf.math.unsorted_segment_max(per_token, questions, count)
    places = tf.range(tf.size(questions, out_type=tf.int64))
    winners = tf.where(per_token == tf.gather(best, questions), places, places.dtype.max)
    token = tf.math.unsorted_segment_min(winners, questions, count)
    token = tf.where(best > _NEVER, token, 0)
    padded = tf.pad(scores, [[0, 1], [0, 0]])  # a row even where there is no token at all
    return best, token, tf.argmax(tf.gather(padded, token), 1)


def _look_up(values, tokens, places):
    """values[tokens[places]], or anything where there is no such place."""
    tf = tensorflow()

    tokens = tf.pad(tokens, [[0, MOST_TOKENS + 1]])
    return tf.gather(tf.pad(values, [[0, 1]]), tf.gather(tokens, places))
