"""DeBERTa's attention: content and position kept apart (He et al. 2021, section 3.1)."""

import keras
from keras import ops

from keras_bert3.layers.masks import attention_mask as to_attention_mask
from keras_bert3.layers.relative_positions import (
    add_to_keys,
    add_to_queries,
    identity_table,
    log_bucket_table,
    relative_blocks,
    relative_scores,
    rows_of,
    windows,
)
from keras_bert3.layers.self_attention import SelfAttention

TERMS = ("c2p", "p2c")
P2C_DISTANCES = ("query_minus_key", "key_minus_query")


@keras.saving.register_keras_serializable(package="keras_bert3")
class DisentangledSelfAttention(SelfAttention):
    """Attention that adds to content what it thinks of distances (DeBERTa, equation 4).

        score(i, j) = (Q_i . K_j + Q_i . Kr[delta(i, j)] + K_j . Qr[delta(i, j)]) / sqrt(d s)

    content to content, content to position ("c2p") and position to content ("p2c"); s is 1 and one
    more for each of the two that is on. Q, K and V come from the content, Kr and Qr from a table P
    of relative embeddings that all layers share, by projections of this layer. In DeBERTa v1 the
    keys have no bias, nor have Kr. delta is `identity_table(span)`.

    The paper writes delta(j, i) in the last term; the released code, and so all released weights,
    have delta(i, j). `p2c_distance` chooses.

    Args:
        num_heads: number of heads h; must divide the width of the model.
        span: k of the paper; P has 2 k rows (512).
        terms: which of "c2p" and "p2c" are on (table 5 of the paper switches each off).
        p2c_distance: "query_minus_key" (as released) or "key_minus_query" (as printed).
        dropout: rate on the attention probabilities (0.1).
        position_dropout: rate on P (0.1), drawn once for the whole batch.
        kernel_initializer: for all kernels; biases start at 0.

    Call arguments:
        hidden: `[b, q, w]`, whose positions ask.
        relative_embeddings: P, `[2 k, w]`.
        memory: `[b, k, w]`, whose positions answer; `hidden` itself when absent.
        attention_mask: see `SelfAttention`.
        query_positions: integers `[b, q]` in [0, k), where in `memory` the queries stand; 0 to
            q - 1 when absent.
        training: whether dropout is on.

    Output shape:
        `[b, q, w]`.

    Raises:
        ValueError: for terms other than "c2p" and "p2c". Position-to-position scores do not depend
            on the content and were never part of the model.

    Example:
        >>> layer = DisentangledSelfAttention(num_heads=4, span=16)
        >>> layer(ops.ones((2, 7, 64)), relative_embeddings=ops.ones((32, 64))).shape
        (2, 7, 64)
    """

    def __init__(
        self,
        num_heads,
        span=512,
        terms=TERMS,
        p2c_distance="query_minus_key",
        dropout=0.1,
        position_dropout=0.1,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(num_heads, dropout, kernel_initializer, **kwargs)
        if not set(terms) <= set(TERMS) or len(set(terms)) != len(terms):
            raise ValueError(f"Expected `terms` among {TERMS}, once each. Received: terms={terms}")
        if p2c_distance not in P2C_DISTANCES:
            raise ValueError(
                f"Expected `p2c_distance` among {P2C_DISTANCES}. Received: {p2c_distance!r}"
            )
        self.span = span
        self.terms = tuple(terms)
        self.p2c_distance = p2c_distance
        self.position_dropout = keras.layers.Dropout(
            position_dropout, dtype=self.dtype_policy, name="position_dropout"
        )
        self.delta = self.delta_table()

    def delta_table(self):
        """Delta by distance; see `identity_table`."""
        return identity_table(self.span)

    def build(self, hidden_shape):
        """Create the projections of content and of relative embeddings."""
        super().build(hidden_shape)
        self.build_position_projections(hidden_shape[-1])

    def build_position_projections(self, width):
        """Create what makes Kr and Qr of P, where a term needs it."""
        for name, term in (("position_key", "c2p"), ("position_query", "p2c")):
            if term in self.terms:
                setattr(self, name, self._dense(width, name))
                getattr(self, name).build((None, width))

    def _dense(self, width, name):
        return keras.layers.Dense(
            width,
            use_bias=name not in ("key", "position_key"),
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )

    def project_positions(self, table, name):
        """Kr (`name` "key") or Qr ("query") of rows of P: `[r, w]` -> `[r, w]`."""
        return getattr(self, f"position_{name}")(table)

    def call(
        self,
        hidden,
        relative_embeddings,
        memory=None,
        attention_mask=None,
        query_positions=None,
        training=None,
    ):
        """Attend from `hidden` to `memory`."""
        memory = hidden if memory is None else memory
        query = self.split_heads(self.query(hidden)) * self.scale
        key = self.split_heads(self.key(memory))
        value = self.split_heads(self.value(memory))
        positions = self.position_dropout(relative_embeddings, training=training)
        scores = self.scores(query, key, positions, query_positions)
        mask = None if attention_mask is None else to_attention_mask(attention_mask)
        return self.gather(scores, value, mask, training)

    @property
    def scale(self):
        """1 / sqrt(d s), on the queries of content and of positions alike."""
        return (self.head_dim * (1 + len(self.terms))) ** -0.5

    def scores(self, query, key, relative_embeddings, query_positions=None):
        """Add the terms: scaled queries `[b, q, h, d]`, keys `[b, k, h, d]` -> `[b, h, q, k]`."""
        scores = ops.einsum("bqhd,bkhd->bhqk", query, key)
        if "c2p" in self.terms:
            scores = self._add_c2p(scores, query, key, relative_embeddings, query_positions)
        if "p2c" in self.terms:
            scores = self._add_p2c(scores, query, key, relative_embeddings, query_positions)
        return scores

    def scores_by_term(self, hidden, relative_embeddings):
        """Give the terms of the scores apart, to look at them.

        Args:
            hidden: `[b, q, w]`.
            relative_embeddings: P, `[2 k, w]`.

        Returns:
            A dict of "c2c" and the terms that are on, each `[b, h, q, q]`; their sum is what the
            softmax takes.
        """
        query = self.split_heads(self.query(hidden)) * self.scale
        key = self.split_heads(self.key(hidden))
        scores = {"c2c": ops.einsum("bqhd,bkhd->bhqk", query, key)}
        for term, add in (("c2p", self._add_c2p), ("p2c", self._add_p2c)):
            if term in self.terms:
                nothing = ops.zeros_like(scores["c2c"])
                scores[term] = add(nothing, query, key, relative_embeddings, None)
        return scores

    def _add_c2p(self, scores, query, key, table, query_positions):
        """Q_i . Kr[delta(i, j)]: every query with every distance from its place."""
        queries, keys = ops.shape(query)[1], ops.shape(key)[1]
        standing = queries if query_positions is None else keys
        rows = rows_of(self.delta, standing - 1, standing + keys, -1)
        relative_key = self._expand(table, rows, "key")
        if query_positions is None:
            return add_to_queries(scores, relative_blocks(query, relative_key, keys))
        distant = ops.einsum("bqhd,rhd->bhqr", query, relative_key)
        return scores + windows(distant, keys - 1 - ops.cast(query_positions, "int32"), keys)

    def _add_p2c(self, scores, query, key, table, query_positions):
        """K_j . Qr[delta(i, j)]: every key with every distance, then turned round."""
        queries, keys = ops.shape(query)[1], ops.shape(key)[1]
        standing = queries if query_positions is None else keys
        sign = 1 if self.p2c_distance == "query_minus_key" else -1
        rows = rows_of(self.delta, sign * (1 - keys), keys + standing, sign)
        relative_query = self._expand(table, rows, "query") * self.scale
        if query_positions is None:
            return add_to_keys(scores, relative_blocks(key, relative_query, standing))
        standing_scores = relative_scores(key, relative_query, standing)
        stands = ops.one_hot(ops.cast(query_positions, "int32"), standing, dtype=scores.dtype)
        return scores + ops.einsum("bhkr,bqr->bhqk", standing_scores, stands)

    def _expand(self, table, rows, name):
        """Kr or Qr with a row for each distance: `[2 k, w]` -> `[r, h, d]`.

        Projected before rows are repeated, or after, whichever projects fewer rows.
        """
        if isinstance(rows.shape[0], int) and rows.shape[0] <= table.shape[0]:
            expanded = self.project_positions(ops.take(table, rows, axis=0), name)
        else:
            expanded = ops.take(self.project_positions(table, name), rows, axis=0)
        return ops.reshape(expanded, (-1, self.num_heads, self.head_dim))

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "span": self.span,
            "terms": list(self.terms),
            "p2c_distance": self.p2c_distance,
            "position_dropout": self.position_dropout.rate,
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class SharedDisentangledSelfAttention(DisentangledSelfAttention):
    """Disentangled attention of DeBERTa v2 and v3: log buckets, and projections shared.

    Kr and Qr come from the relative embeddings by the projections of the content's keys and
    queries, biases included; delta is `log_bucket_table(span, max_position)`.

    Args:
        num_heads: see `DisentangledSelfAttention`.
        span: buckets on either side (256).
        max_position: distance at which buckets end (512).
        **kwargs: the other arguments of `DisentangledSelfAttention`.
    """

    def __init__(self, num_heads, span=256, max_position=512, **kwargs):
        self.max_position = max_position
        super().__init__(num_heads, span, **kwargs)

    def delta_table(self):
        """Delta by distance; see `log_bucket_table`."""
        return log_bucket_table(self.span, self.max_position)

    def build_position_projections(self, width):
        """Nothing to do: the content's projections serve."""

    def _dense(self, width, name):
        return super(DisentangledSelfAttention, self)._dense(width, name)

    def project_positions(self, table, name):
        """Kr or Qr of rows of P, by the content's projection of that name."""
        return getattr(self, name)(table)

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "max_position": self.max_position}
