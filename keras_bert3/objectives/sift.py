"""SiFT, scale-invariant fine-tuning: answer alike where the words are almost the same."""

import keras
from keras import ops

_GAIN = 2.0**10
"""Multiplies a loss whose gradient half precision would round to 0; exact, a power of 2."""


class SiFT:
    """Virtual adversarial training on normalised embeddings (He et al. 2021, section 5.1).

        t   = f(x)                                          the ordinary pass
        d0  = N(0, noise^2), cut at 2 noise
        g   = gradient of sum_b D(f(x + s d0), t) with respect to d0
        d   = d0 + step_size g / (epsilon + max_w |g|)
        loss = task loss + weight mean_b D(f(x + s d), t)

    x are the embeddings just before their normalisation and s their standard deviation over the
    width w, so that d moves the normalised ones by itself, however long the vectors of a model are:
    this is what makes it scale-invariant. D is `divergence`. The step starts from x as a constant:
    word vectors learn through t alone. Values are those of microsoft/DeBERTa `sift.py`, which takes
    one step and does not project it.

    A step costs one more pass backward and one more pass forward and backward: three times as much.

    Args:
        weight: of the second term: 5.0 for base models, 3.0 for v3-xsmall.
        step_size: 1e-4.
        noise: standard deviation of the first perturbation (1e-2).
        epsilon: 1e-6.

    Raises:
        ValueError: for a value that is not positive, or infinite.

    Example:
        >>> task = TextClassifier(backbone, labels=["no", "yes"], preprocessor=preprocessor)
        >>> task.compile(adversarial=SiFT(weight=5.0))
        >>> task.fit(texts, labels)
    """

    def __init__(self, weight=5.0, step_size=1e-4, noise=1e-2, epsilon=1e-6):
        values = {"weight": weight, "step_size": step_size, "noise": noise, "epsilon": epsilon}
        for name, value in values.items():
            if not 0 < value < float("inf"):
                raise ValueError(f"Expected a positive {name}. Received: {value!r}")
        self.weight = weight
        self.step_size = step_size
        self.noise = noise
        self.epsilon = epsilon

    def loss(self, clean, forward, gradient, shape, seed, sample_weight=None):
        """Return the second term, weighted.

        Args:
            clean: logits of the ordinary pass: a tensor, or tensors in a dict or list.
            forward: a function from a perturbation `[b, q, w]` to logits of the same structure.
            gradient: `gradient(function, at)`, the gradient of a function of one tensor.
            shape: of the perturbation.
            seed: a `keras.random.SeedGenerator`.
            sample_weight: as of `fit`: None, or weights for all logits or for each by its name.

        Returns:
            A float32 scalar.
        """
        constant = keras.tree.map_structure(ops.stop_gradient, clean)

        def distance(perturbation):
            given = forward(perturbation)
            return _GAIN * sum(ops.sum(d) for d in _divergences(given, constant).values())

        start = self.start(shape, seed)
        moved = ops.stop_gradient(self.step(start, gradient(distance, start)))
        divergences = _divergences(forward(moved), clean)
        return self.weight * sum(
            _mean(d, _weights_of(name, sample_weight)) for name, d in divergences.items()
        )

    def start(self, shape, seed):
        """Draw the first perturbation: float32 of `shape`."""
        drawn = keras.random.normal(shape, stddev=self.noise, dtype="float32", seed=seed)
        return ops.clip(drawn, -2 * self.noise, 2 * self.noise)

    def step(self, perturbation, gradient):
        """Move a perturbation up its gradient; a gradient with NaN or infinity moves nothing.

        Args:
            perturbation: `[b, q, w]`.
            gradient: `[b, q, w]`, of a loss times `_GAIN`.
        """
        gradient = ops.cast(gradient, "float32") / _GAIN
        largest = ops.max(ops.abs(gradient), axis=-1, keepdims=True)
        direction = gradient / (self.epsilon + largest)
        is_finite = ops.all(ops.isfinite(gradient))
        return perturbation + self.step_size * ops.where(is_finite, direction, 0.0)


def shift(hidden, perturbation, epsilon=1e-7):
    """Move vectors by a perturbation of their normalised form: x + s d, x and s held constant.

    For a LayerNorm that follows this is to replace its input by x_normalised + d, as published, but
    for the two epsilons; vectors that no LayerNorm follows (GPT-1) keep their size.

    Args:
        hidden: x, `[..., w]`.
        perturbation: d, as many numbers.
        epsilon: under the root of s (1e-7).

    Returns:
        The shape and dtype of `hidden`.
    """
    constant = ops.cast(ops.stop_gradient(hidden), "float32")
    deviation = ops.sqrt(ops.var(constant, axis=-1, keepdims=True) + epsilon)
    moved = constant + deviation * ops.reshape(perturbation, ops.shape(hidden))
    return ops.cast(moved, hidden.dtype)


def divergence(first, second):
    """Compare logits: KL(p_2 || p_1) + KL(p_1 || p_2), the first p of each held constant.

    p = softmax over the last axis. Gradients are p_1 - p_2 for the first logits and p_2 - p_1 for
    the second, as published, where they are those of two cross-entropies; the entropies, which are
    constants, are left out here, so that equal logits have divergence 0.

    A single logit is a regression, whose softmax is always 1 and could not differ. It is taken for
    the mean of a normal distribution of variance 1, whose symmetric divergence is the squared
    difference.

    Args:
        first: logits `[..., c]`.
        second: logits `[..., c]`.

    Returns:
        float32 `[...]`.

    Example: `divergence(np.array([[1.0]]), np.array([[3.0]]))` is `[4.0]`.
    """
    first, second = ops.cast(first, "float32"), ops.cast(second, "float32")
    if first.shape[-1] == 1:
        return ops.square(first - second)[..., 0]
    first, second = ops.log_softmax(first), ops.log_softmax(second)
    return _kl(second, first) + _kl(first, second)


def _kl(constant, logs):
    """KL divergence from logarithms of probabilities, the first held constant."""
    constant = ops.stop_gradient(constant)
    return ops.sum(ops.exp(constant) * (constant - logs), axis=-1)


def _divergences(first, second):
    """The divergences of logits in the same structure, by name or place."""
    if hasattr(first, "items"):
        return {name: divergence(first[name], second[name]) for name in first}
    if isinstance(first, list | tuple):
        pairs = zip(first, second, strict=True)
        return {place: divergence(*pair) for place, pair in enumerate(pairs)}
    return {0: divergence(first, second)}


def _weights_of(name, sample_weight):
    """The weights that belong to one output."""
    if hasattr(sample_weight, "items"):
        return sample_weight.get(name)
    if isinstance(sample_weight, list | tuple):
        return sample_weight[name]
    return sample_weight


def _mean(values, weights=None):
    """Mean over all axes; weighted by `weights`, which may lack the last axes."""
    if weights is None:
        return ops.mean(values)
    weights = ops.cast(weights, "float32")
    missing = len(values.shape) - len(weights.shape)
    weights = ops.reshape(weights, (*ops.shape(weights), *(1,) * missing))
    weights = ops.broadcast_to(weights, ops.shape(values))
    total = ops.sum(weights)
    return ops.sum(values * weights) / ops.where(total > 0, total, 1.0)
