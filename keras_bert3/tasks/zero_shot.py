"""Answers from a language model that was never told the task (Radford et al. 2018, section 5).

All of the paper's heuristics compare mean log-probabilities of stretches of text:

| task         | stretches that are scored                                                     |
|--------------|-------------------------------------------------------------------------------|
| CoLA         | the sentence; a threshold tells acceptable ones                               |
| SST-2        | "positive" and "negative", after the sentence and "very"                      |
| RACE, COPA   | each answer, after document and question                                      |
| Winograd     | what follows the pronoun, after each referent in the pronoun's place          |
"""

from collections.abc import Sequence

import numpy as np

Ids = Sequence[int]


def score_continuations(
    task, contexts: Sequence[Ids], continuations: Sequence[Ids], batch_size: int = 16
) -> np.ndarray:
    """Mean log-probability, in nats a token, of each continuation after its context.

    Args:
        task: a `CausalLM`.
        contexts: lists of ids, each of at least one token: a model has no opinion on a first token.
            A context that leaves no room for its continuation loses ids at its beginning.
        continuations: as many lists of ids, each of at least one token.
        batch_size: rows that are run together; all rows are padded to one length.

    Returns:
        float64 `[n]`.

    Raises:
        ValueError: for an empty context or continuation, different numbers of them, or a
            continuation too long for the position table.
    """
    rows, counts = _rows(contexts, continuations, task.backbone.max_sequence_length)
    length = max(map(len, rows), default=2)
    token_ids = np.zeros((len(rows), length), "int32")
    padding_mask = np.zeros((len(rows), length), bool)
    for i, row in enumerate(rows):
        token_ids[i, : len(row)], padding_mask[i, : len(row)] = row, True
    scores = []
    for first in range(0, len(rows), batch_size):
        part = slice(first, first + batch_size)
        x = {"token_ids": token_ids[part], "padding_mask": padding_mask[part]}
        logits = np.asarray(task.predict_on_batch(x), "float32")
        for ids, values, count in zip(rows[part], logits, counts[part], strict=True):
            places = np.arange(len(ids) - count, len(ids))
            scores.append(_log_probabilities(values[places - 1], np.array(ids)[places]).mean())
    return np.array(scores, "float64")


def _rows(contexts, continuations, most: int) -> tuple[list[list[int]], list[int]]:
    """Join contexts and continuations; count the tokens of the latter."""
    if len(contexts) != len(continuations):
        raise ValueError(
            "Expected as many continuations as contexts. "
            f"Received: {len(continuations)} and {len(contexts)}"
        )
    rows = []
    for i, (context, continuation) in enumerate(zip(contexts, continuations, strict=True)):
        if not len(context) or not len(continuation):
            raise ValueError(
                f"Expected at least one token before and in each continuation. Received: "
                f"{len(context)} and {len(continuation)} tokens in row {i}"
            )
        room = most - len(continuation)
        if room < 1:
            raise ValueError(
                f"Expected continuations of fewer than {most} tokens, the size of the position "
                f"table. Received: {len(continuation)} tokens in row {i}"
            )
        rows.append([*context[-room:], *continuation])
    return rows, [len(continuation) for continuation in continuations]


def _log_probabilities(logits: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Of `ids` `[t]` under `logits` `[t, v]`."""
    largest = logits.max(-1)
    normaliser = np.log(np.exp(logits - largest[:, None]).sum(-1)) + largest
    return np.take_along_axis(logits, ids[:, None], -1)[:, 0] - normaliser


def choose(task, examples: Sequence[tuple[Sequence[Ids], Sequence[Ids]]]) -> np.ndarray:
    """Choose the candidate whose continuation is likeliest.

    Args:
        task: a `CausalLM`.
        examples: pairs of contexts and continuations, one of each for every candidate. Answers
            share a context; referents share a continuation.

    Returns:
        int64 `[n]`, the chosen candidates, counted from 0.
    """
    contexts = [context for pair in examples for context in pair[0]]
    continuations = [continuation for pair in examples for continuation in pair[1]]
    scores = score_continuations(task, contexts, continuations)
    edges = np.cumsum([len(pair[0]) for pair in examples])[:-1]
    return np.array([part.argmax() for part in np.split(scores, edges)], "int64")
