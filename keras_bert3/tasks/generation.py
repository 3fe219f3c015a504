"""Writing text with a causal language model, a token at a time.

Prompts stand on the left of a cache of fixed size, padded on their left so that all end at one
place; what is written follows from there. Shapes do not depend on the step, so that one compiled
program writes everything: a `keras.Model` whose `call` is the whole loop, which `predict_on_batch`
compiles on every backend.
"""

import functools
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert3.layers.gpt_embeddings import count_positions
from keras_bert3.layers.masks import causal_mask
from keras_bert3.objectives.counter_random import random_bits, uniform
from keras_bert3.tasks.samplers import Beam, Contrastive

LENGTH_STEP = 32
"""Lengths are rounded up to a multiple: few distinct lengths mean few compilations."""
_STREAM = 11


def generate(task, prompts: Sequence[Sequence[int]], max_length: int, sampler, end_id=None):
    """Continue lists of ids; see `CausalLM.generate`.

    Returns:
        For each prompt the list of its ids and those that follow.
    """
    _check_words(task.backbone, prompts, sampler, end_id)
    lengths = np.array([len(prompt) for prompt in prompts])
    _check(task.backbone, lengths, max_length)
    width = _rounded(lengths.max(), max_length)
    num_steps = _rounded(max_length - lengths.min(), max_length)
    inputs = {
        "token_ids": np.zeros((len(prompts), width), "int32"),
        "padding_mask": np.zeros((len(prompts), width), bool),
        "uniform": _uniform(sampler, len(prompts), num_steps),
        "steps": (max_length - lengths).astype("int32"),
    }
    for row, prompt in enumerate(prompts):
        inputs["token_ids"][row, width - len(prompt) :] = prompt
        inputs["padding_mask"][row, width - len(prompt) :] = True
    end = -1 if end_id is None else int(end_id)
    writer = _writer(task, sampler, end, width, num_steps)
    written = np.asarray(writer.predict_on_batch(inputs))
    rows = []
    for prompt, row in zip(prompts, written, strict=True):
        following = row[width : width + max_length - len(prompt)].tolist()
        if end_id in following:
            following = following[: following.index(end_id) + 1]
        rows.append([*map(int, prompt), *following])
    return rows


def _check_words(backbone, prompts, sampler, end_id) -> None:
    """Refuse what no loop could tell from what was meant: ids and counts beyond the vocabulary."""
    size = backbone.vocabulary_size
    if any(np.ndim(prompt) != 1 for prompt in prompts):
        raise ValueError(f"Expected a list of ids for each prompt. Received: {str(prompts)[:60]}")
    named = [int(i) for prompt in prompts for i in prompt] + ([] if end_id is None else [end_id])
    unknown = [i for i in named if not 0 <= i < size]
    if unknown:
        raise ValueError(
            f"Expected ids of a vocabulary of {size} tokens, from 0. Received: {unknown[0]}"
        )
    if not (isinstance(sampler, Beam | Contrastive) or hasattr(sampler, "choose")):
        raise ValueError(f"Expected a sampler, such as `Greedy()`. Received: {sampler!r}")
    if isinstance(sampler, Contrastive) and sampler.top_k > size:
        raise ValueError(f"Expected top_k up to the vocabulary's {size}. Received: {sampler}")


def _check(backbone, lengths: np.ndarray, max_length: int) -> None:
    if not hasattr(backbone, "blocks"):
        raise ValueError(
            "Expected a backbone that writes step by step, such as `GPTBackbone`. "
            f"Received: {type(backbone).__name__}"
        )
    if not len(lengths) or lengths.min() < 1:
        raise ValueError(
            f"Expected prompts of at least one token. Received: lengths {lengths.tolist()}"
        )
    if max_length > backbone.max_sequence_length:
        raise ValueError(
            f"Expected max_length of at most {backbone.max_sequence_length}, the size of the "
            f"position table. Received: max_length={max_length}"
        )
    if lengths.max() >= max_length:
        raise ValueError(
            f"Expected prompts shorter than max_length={max_length} tokens. "
            f"Received: one of {lengths.max()}"
        )


def _rounded(length: int, most: int) -> int:
    return int(min(-(-length // LENGTH_STEP) * LENGTH_STEP, most))


def _uniform(sampler, rows: int, steps: int) -> np.ndarray:
    """A number in [0, 1) for each row and step."""
    seed = getattr(sampler, "seed", 0)
    numbers = uniform(random_bits(seed, _STREAM, np.arange(rows)[:, None], np.arange(steps)))
    return np.minimum(numbers, 1 - 2.0**-24).astype("float32")


def _writer(task, sampler, end_id: int, width: int, num_steps: int) -> "_Writer":
    """The compiled program of a task for these settings, made once."""
    # Straight into __dict__, past Keras's tracking: a program is no part of the model.
    programs = task.__dict__.setdefault("_generation_programs", {})
    key = (sampler, end_id, width, num_steps)
    if key not in programs:
        programs[key] = _Writer(task, *key)
    return programs[key]


class _Writer(keras.Model):
    """From prompts `[b, P]` to prompts with their continuation `[b, P + N]`."""

    def __init__(self, task, sampler, end_id, width, num_steps):
        super().__init__(dtype=task.dtype_policy, name="writer")
        self.autocast = False
        self.task = task
        loop = {Beam: _search_beams, Contrastive: _search_contrastively}.get(type(sampler), _sample)
        self.loop = functools.partial(loop, sampler=sampler, end_id=end_id)
        self.width, self.capacity = width, width + num_steps
        self.built = True

    def build(self, inputs_shape=None):
        """Nothing to do: the weights are the task's."""

    def call(self, inputs):
        """Run the loop."""
        return self.loop(_Stepper(self.task.backbone, self.width, self.capacity), inputs)


class _Stepper:
    """The network on new positions, with all that it keeps between steps."""

    def __init__(self, backbone, width, capacity):
        self.backbone = backbone
        self.width = width
        self.capacity = capacity
        self.table, self.positions = backbone.embeddings.tables()

    def read(self, token_ids, padding_mask):
        """Run the prompts: their last layer `[b, P, w]` and the caches."""
        batch, width = ops.shape(token_ids)[0], self.width
        mask = ops.logical_and(causal_mask(width), padding_mask[:, None, None, :])
        rest = ops.zeros((batch, 1, width, self.capacity - width), "bool")
        mask = ops.concatenate([mask, rest], axis=-1)
        caches = [
            block.attention.empty_cache(batch, self.capacity) for block in self.backbone.blocks
        ]
        return self._run(token_ids, count_positions(padding_mask), caches, 0, mask)

    def write(self, token_ids, real, caches, place):
        """Run one token a row: its last layer `[b, w]` and the caches.

        Args:
            token_ids: `[b]`.
            real: bool `[b, k]`, places of the cache that hold real tokens, the new one included.
            caches: of every block.
            place: of the new token in the caches.
        """
        positions = ops.sum(ops.cast(real, "int32"), axis=1, keepdims=True) - 1
        positions = ops.minimum(positions, self.backbone.max_sequence_length - 1)
        mask = real[:, None, None, :]
        hidden, caches = self._run(token_ids[:, None], positions, caches, place, mask)
        return hidden[:, 0], caches

    def _run(self, token_ids, positions, caches, start, mask):
        tables = self.table, self.positions
        hidden, new_caches = self.backbone.embeddings(token_ids, positions, tables=tables), []
        for block, cache in zip(self.backbone.blocks, caches, strict=True):
            hidden, cache = block.step(hidden, cache, start, mask)
            new_caches.append(cache)
        return hidden, new_caches

    def logits(self, hidden):
        """Score the vocabulary: `[b, w]` -> float32 `[b, v]`."""
        return ops.cast(ops.einsum("bw,vw->bv", hidden, self.table), "float32")


def _start(stepper, inputs):
    """What all loops begin with: ids `[b, k]`, real places `[b, k]`, last layers and caches."""
    hidden, caches = stepper.read(inputs["token_ids"], inputs["padding_mask"])
    room = ((0, 0), (0, stepper.capacity - stepper.width))
    token_ids = ops.pad(inputs["token_ids"], room)
    real = ops.not_equal(ops.pad(ops.cast(inputs["padding_mask"], "int32"), room), 0)
    return token_ids, real, hidden, caches


def _put(table, values, place):
    """Write values `[b]` into column `place` of `[b, k]`."""
    return ops.slice_update(table, (0, place), ops.cast(values[:, None], table.dtype))


def _loop(step, state, done):
    """Repeat `step(n, state) -> state` until the entry `done` of the state is true everywhere."""

    def goes_on(n, *state):
        return ops.logical_not(ops.all(state[done]))

    def body(n, *state):
        return (n + 1, *step(n, state))

    return ops.while_loop(goes_on, body, (ops.zeros((), "int32"), *state))[1:]


def _sample(stepper, inputs, sampler, end_id):
    """Choose a token a row at each step."""
    width = stepper.width
    token_ids, real, hidden, caches = _start(stepper, inputs)
    steps, done = inputs["steps"], inputs["steps"] <= 0
    state = (token_ids, real, stepper.logits(hidden[:, -1]), done, caches)

    def step(n, state):
        token_ids, real, logits, done, caches = state
        draws = ops.take(inputs["uniform"], n, axis=1)
        chosen = ops.where(done, end_id, sampler.choose(logits, draws))
        place = width + n
        token_ids, real = _put(token_ids, chosen, place), _put_true(real, place)
        hidden, caches = stepper.write(ops.maximum(chosen, 0), real, caches, place)
        done = done | ops.equal(chosen, end_id) | (n + 1 >= steps)
        return token_ids, real, stepper.logits(hidden), done, caches

    return _loop(step, state, done=3)[0]


def _put_true(real, place):
    """Mark column `place` of `[b, k]` as real."""
    return ops.logical_or(real, ops.arange(real.shape[1], dtype="int32")[None] == place)


def _search_beams(stepper, inputs, sampler, end_id):
    """Keep the best continuations of each prompt."""
    width, beams = stepper.width, sampler.num_beams
    vocabulary = stepper.backbone.vocabulary_size
    batch = ops.shape(inputs["token_ids"])[0]
    token_ids, real, hidden, caches = (
        keras.tree.map_structure(lambda x: ops.repeat(x, beams, axis=0), part)
        for part in _start(stepper, inputs)
    )
    # At first all beams are the prompt: one of them counts.
    totals = ops.tile(ops.where(ops.arange(beams) == 0, 0.0, -1e9)[None], (batch, 1))
    steps = ops.repeat(inputs["steps"], beams, axis=0)
    done = steps <= 0
    state = (token_ids, real, stepper.logits(hidden[:, -1]), totals, done, caches)

    def step(n, state):
        token_ids, real, logits, totals, done, caches = state
        scores = ops.log_softmax(logits, axis=-1)
        # A finished beam goes on in one way only, at no cost.
        stays = ops.where(ops.arange(vocabulary)[None] == max(end_id, 0), 0.0, -1e9)
        scores = ops.where(done[:, None], stays, scores)
        scores = ops.reshape(totals, (-1, 1)) + scores
        totals, best = ops.top_k(ops.reshape(scores, (-1, beams * vocabulary)), beams)
        chosen = ops.reshape(ops.cast(best % vocabulary, "int32"), (-1,))
        offset = ops.arange(batch, dtype="int32")[:, None] * beams
        parent = ops.reshape(ops.cast(best // vocabulary, "int32") + offset, (-1,))
        token_ids, real, done, caches = keras.tree.map_structure(
            lambda x: ops.take(x, parent, axis=0), (token_ids, real, done, caches)
        )
        place = width + n
        token_ids, real = _put(token_ids, chosen, place), _put_true(real, place)
        hidden, caches = stepper.write(chosen, real, caches, place)
        done = done | ops.equal(chosen, end_id) | (n + 1 >= steps)
        return token_ids, real, stepper.logits(hidden), totals, done, caches

    token_ids = _loop(step, state, done=4)[0]
    return ops.reshape(token_ids, (-1, beams, stepper.capacity))[:, 0]


def _search_contrastively(stepper, inputs, sampler, end_id):
    """Try the likeliest tokens, keep the one least like those before it."""
    width, tries = stepper.width, sampler.top_k
    batch = ops.shape(inputs["token_ids"])[0]
    token_ids, real, hidden, caches = _start(stepper, inputs)
    steps, done = inputs["steps"], inputs["steps"] <= 0
    room = ((0, 0), (0, stepper.capacity - width), (0, 0))
    directions = ops.pad(_direction(hidden), room)
    state = (token_ids, real, stepper.logits(hidden[:, -1]), directions, done, caches)

    def step(n, state):
        token_ids, real, logits, directions, done, caches = state
        place = width + n
        likely, candidates = ops.top_k(ops.softmax(logits, axis=-1), tries)
        candidates = ops.cast(candidates, "int32")
        now_real = _put_true(real, place)
        hidden, tried = stepper.write(
            ops.reshape(candidates, (-1,)),
            ops.repeat(now_real, tries, axis=0),
            keras.tree.map_structure(lambda x: ops.repeat(x, tries, axis=0), caches),
            place,
        )
        direction = ops.reshape(_direction(hidden), (-1, tries, hidden.shape[-1]))
        likeness = ops.einsum("btw,bkw->btk", direction, directions)
        likeness = ops.max(ops.where(real[:, None], likeness, -1.0), axis=-1)
        score = (1 - sampler.alpha) * likely - sampler.alpha * likeness
        best = ops.cast(ops.argmax(score, axis=-1), "int32")
        row = ops.arange(batch, dtype="int32") * tries + best
        hidden, caches = keras.tree.map_structure(
            lambda x: ops.take(x, row, axis=0), (hidden, tried)
        )
        chosen = ops.take_along_axis(candidates, best[:, None], axis=1)[:, 0]
        chosen = ops.where(done, end_id, chosen)
        directions = ops.slice_update(directions, (0, place, 0), _direction(hidden)[:, None])
        done = done | ops.equal(chosen, end_id) | (n + 1 >= steps)
        token_ids = _put(token_ids, chosen, place)
        return token_ids, now_real, stepper.logits(hidden), directions, done, caches

    return _loop(step, state, done=4)[0]


def _direction(hidden):
    """Vectors of length 1, in float32."""
    return ops.normalize(ops.cast(hidden, "float32"), axis=-1)
