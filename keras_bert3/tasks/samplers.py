"""How the next token is chosen, for `CausalLM.generate`.

`Greedy` and `Sample` look at one step: `choose(logits, uniform)` gives a token a row. `Beam` and
`Contrastive` keep several continuations in view, see `generation`.
"""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class Greedy:
    """The likeliest token."""

    def choose(self, logits, uniform):
        """Return ids `[b]` for logits `[b, v]`."""
        return ops.cast(ops.argmax(logits, axis=-1), "int32")


@dataclasses.dataclass(frozen=True)
class Sample:
    """A token drawn with its probability, or only from the likely ones.

    Random numbers depend on the seed, the row and the step alone: a seed gives the same text again.

    Args:
        temperature: logits are divided by it; below 1 the likely become likelier.
        top_k: draw from the k likeliest tokens only (Fan et al. 2018, section 5.4).
        top_p: draw from the fewest likeliest tokens whose probabilities reach p together (Holtzman
            et al. 2019, section 3.1). With `top_k`, of the k tokens' probabilities.
        seed: any integer.

    Raises:
        ValueError: for a temperature or `top_k` that is not positive, or a `top_p` not in (0, 1].
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self):
        if self.temperature <= 0:
            raise ValueError(f"Expected temperature above 0. Received: {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"Expected top_k of at least 1. Received: {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"Expected top_p in (0, 1]. Received: {self.top_p}")

    def choose(self, logits, uniform):
        """Return ids `[b]` for logits `[b, v]`, given numbers in [0, 1) `[b]`."""
        logits = ops.cast(logits, "float32") / self.temperature
        size = logits.shape[-1]
        if self.top_k is None and self.top_p is None:
            return _draw(ops.softmax(logits, axis=-1), uniform)
        values, ids = ops.top_k(logits, min(self.top_k or size, size))
        # Keras warns of a softmax over one value, which top_k=1 has.
        shares = ops.exp(values - values[:, :1])
        probabilities = shares / ops.sum(shares, axis=-1, keepdims=True)
        if self.top_p is not None:
            before = ops.cumsum(probabilities, axis=-1) - probabilities
            probabilities = ops.where(before < self.top_p, probabilities, 0.0)
        place = _draw(probabilities, uniform)
        return ops.cast(ops.take_along_axis(ids, place[:, None], axis=-1)[:, 0], "int32")


def _draw(probabilities, uniform):
    """Invert the cumulative distribution: the first place whose sum exceeds `uniform`."""
    reached = ops.cumsum(probabilities, axis=-1)
    aim = uniform[:, None] * reached[:, -1:]
    place = ops.sum(ops.cast(reached <= aim, "int32"), axis=-1)
    # Rounding may put the aim on the total: then the last place of any probability is meant.
    last = ops.sum(ops.cast(reached < reached[:, -1:], "int32"), axis=-1)
    return ops.minimum(place, last)


@dataclasses.dataclass(frozen=True)
class Beam:
    """Beam search: of all one-token extensions of the `num_beams` best, the `num_beams` best again.

    The continuation of the highest total log-probability is returned.
    """

    num_beams: int = 4

    def __post_init__(self):
        if self.num_beams < 1:
            raise ValueError(f"Expected num_beams of at least 1. Received: {self.num_beams}")


@dataclasses.dataclass(frozen=True)
class Contrastive:
    """Contrastive search: likely, but unlike what is there already.

        argmax over the k likeliest v of (1 - alpha) p(v) - alpha max_j cos(h_v, h_j)

    Su et al. 2022, equation 5, where h_v is the last layer's vector of v and h_j are those of the
    tokens before it.

    Args:
        top_k: k (5).
        alpha: weight of the penalty (0.6); 0 is greedy search.
    """

    top_k: int = 5
    alpha: float = 0.6

    def __post_init__(self):
        if self.top_k < 1 or not 0 <= self.alpha <= 1:
            raise ValueError(
                "Expected top_k of at least 1 and alpha in [0, 1]. "
                f"Received: top_k={self.top_k}, alpha={self.alpha}"
            )
