"""The optimisers of the three papers: one Adam with decoupled weight decay, and what each changes.

    m = b1 m + (1 - b1) g
    v = b2 v + (1 - b2) g^2
    p = p - lr s (u(m, v) + decay p)

All do this; u, s and the choice of decayed variables differ:

    optimiser   u(m, v)                       s                               decays
    AdamW       m/c1 / (sqrt(v/c2) + eps)     1                               no norms, no biases
    BertAdam    m / (sqrt(v) + eps)           1                               no norms, no biases
    GPTAdam     m / (sqrt(v) + eps)           sqrt(c2) / c1                   matrices only
    Lamb        m/c1 / (sqrt(v/c2) + eps)     |p| / |u + decay p| a variable  no norms, no biases

with c1 = 1 - b1^t, c2 = 1 - b2^t, t = 1, 2, ... Embeddings are decayed by all four.
"""

import keras
from keras import ops

from keras_bert3.training import fused_adam, replicas

NORMS_AND_BIASES = ("bias", "gamma", "beta")


class DecoupledAdam(keras.optimizers.Optimizer):
    """What the four optimisers share.

    Beside the formula it differs from the optimisers of Keras in four ways. A schedule counts
    updates, not micro-steps, where gradients are accumulated. Gradients of look-ups are made dense
    before anything is squared. The global norm of the gradients of the last update, after averaging
    and before clipping, is kept in the variable `gradient_norm`. `rate_factors` give parts of a
    model learning rates of their own.

    Args:
        learning_rate: a float or a schedule over updates.
        weight_decay: decoupled decay.
        beta_1: memory of m.
        beta_2: memory of v.
        epsilon: added outside the root.
        global_clipnorm: largest norm of all gradients together; None for no clipping.
        rate_factors: from a piece of a variable's path, such as `/block_0/`, to the factor on its
            learning rate; see `layerwise_rates`. What no piece is part of has factor 1.
        name: of the optimiser.
        kwargs: of `keras.optimizers.Optimizer`, such as `gradient_accumulation_steps`.

    Raises:
        ValueError: when built, if a piece of `rate_factors` is in no path or two are in one.
    """

    def __init__(
        self,
        learning_rate,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        rate_factors=None,
        name=None,
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            global_clipnorm=global_clipnorm,
            name=name,
            **kwargs,
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.rate_factors = dict(rate_factors or {})

    def build(self, variables):
        """Create m and v for each variable, and settle its decay and its rate."""
        if self.built:
            return
        factors = _factors(self.rate_factors, [variable.path for variable in variables])
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        self.gradient_norm = self.add_variable(
            (), name="gradient_norm", aggregation="only_first_replica"
        )
        self._rate_of = factors
        self._decay_of = [self._decay(variable) for variable in variables]

    def decays(self, variable) -> bool:
        """Whether a variable is decayed, by its name and shape."""
        return variable.name not in NORMS_AND_BIASES

    def _decay(self, variable):
        is_decayed = self.decays(variable) and self._use_weight_decay(variable)
        return float(self.weight_decay or 0.0) if is_decayed else 0.0

    def decay_groups(self, variables) -> tuple[list[str], list[str]]:
        """Return the paths of the decayed variables, and those of the others."""
        groups = ([], [])
        for variable in variables:
            groups[0 if self._decay(variable) else 1].append(variable.path)
        return groups

    def apply(self, grads, trainable_variables=None):
        """Update the variables; gradients are dense and whole first, see `replicas`."""
        grads = replicas.whole(grads)
        with replicas.after(grads):
            super().apply(grads, trainable_variables)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        """Nothing: `apply` has added up the replicas' gradients, before they were clipped."""
        return grads_and_vars

    def _clip_gradients(self, grads):
        """Note the global norm; scale all gradients so that it is at most `global_clipnorm`.

        A norm that is not finite makes every gradient NaN, which a guard then sees.
        """
        flat = [ops.reshape(ops.cast(g, "float32"), (-1,)) for g in grads]
        norm = ops.norm(ops.stack([ops.norm(g) for g in flat]))
        self.gradient_norm.assign(norm)
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        scale = self.global_clipnorm / ops.maximum(norm, self.global_clipnorm) + (norm - norm)
        return [g * ops.cast(scale, g.dtype) for g in grads]

    def _apply_weight_decay(self, variables):
        """Nothing: `update_step` decays."""

    def _get_current_learning_rate(self):
        """The rate of this update; Keras would count micro-steps."""
        if isinstance(self._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            return self._learning_rate(self.iterations)
        return super()._get_current_learning_rate()

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """Update the variables: one by one, or by one kernel where there is such.

        A class has a kernel if it defines `fused_step` itself: one that inherits it may have
        changed the formula. It returns the rate and the step that `fused_adam.update` takes.
        """
        has_kernel = "fused_step" in vars(type(self))
        if has_kernel and fused_adam.is_available(trainable_variables):
            rate, step = self.fused_step(learning_rate)
            fused_adam.update(self, grads, trainable_variables, rate, step)
        else:
            super()._backend_update_step(grads, trainable_variables, learning_rate)

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable."""
        dtype, index = variable.dtype, self._get_variable_index(variable)
        gradient = ops.cast(gradient, dtype)
        m, v = self._momentums[index], self._velocities[index]
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        change = self.direction(m, v)
        decay = self._decay_of[index]
        if decay:
            change = change + decay * variable
        rate = ops.cast(learning_rate, dtype) * self._rate_of[index]
        self.assign_sub(variable, rate * self.scale(variable, change, bool(decay)) * change)

    def direction(self, m, v):
        """Return u(m, v)."""
        return m / (ops.sqrt(v) + self.epsilon)

    def scale(self, variable, change, is_decayed):
        """Return s, a number or a scalar tensor."""
        return 1.0

    def _corrections(self, dtype):
        """Return c1 and c2 of the present update."""
        step = ops.cast(self.iterations + 1, dtype)
        return [1 - ops.power(ops.cast(b, dtype), step) for b in (self.beta_1, self.beta_2)]

    def _corrected_direction(self, m, v):
        first, second = self._corrections(m.dtype)
        return m / first / (ops.sqrt(v / second) + self.epsilon)

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "rate_factors": dict(self.rate_factors),
        }


def _factors(pieces, paths):
    """The factor of each path: that of the one piece in it, or 1."""
    found = [[piece for piece in pieces if piece in f"/{path}/"] for path in paths]
    unused = set(pieces).difference(*found) if pieces else ()
    if unused:
        raise ValueError(
            f"Expected each piece of `rate_factors` in the path of a variable, such as {paths[0]}. "
            f"Received: {sorted(unused)[0]!r}, which is in none"
        )
    for path, matches in zip(paths, found, strict=True):
        if len(matches) > 1:
            raise ValueError(
                f"Expected one piece of `rate_factors` at most in a path. Received: {path}, "
                f"in which are {' and '.join(map(repr, matches))}"
            )
    return [float(pieces[matches[0]]) if matches else 1.0 for matches in found]


@keras.saving.register_keras_serializable(package="keras_bert3")
class AdamW(DecoupledAdam):
    """Adam with bias correction and decoupled weight decay (Loshchilov & Hutter 2019).

        p = p - lr (m / c1 / (sqrt(v / c2) + eps) + decay p)

    The usual choice for fine-tuning. Differs from `keras.optimizers.AdamW` as `DecoupledAdam`
    says: norms and biases are not decayed.

    Args:
        learning_rate: a float or a schedule over updates (2e-5 to 5e-5 in Devlin et al. 2018,
            appendix A.3).
        epsilon: 1e-8.
        kwargs: see `DecoupledAdam`.

    Example:
        >>> optimizer = AdamW(WarmupLinearDecay(3e-5, 100, 1000), gradient_accumulation_steps=4)
    """

    def __init__(self, learning_rate=5e-5, epsilon=1e-8, name="adamw", **kwargs):
        super().__init__(learning_rate, epsilon=epsilon, name=name, **kwargs)

    def direction(self, m, v):
        """Return u(m, v), bias-corrected."""
        return self._corrected_direction(m, v)

    def fused_step(self, learning_rate):
        """Return the rate itself, and the step whose corrections count."""
        return learning_rate, self.iterations + 1


@keras.saving.register_keras_serializable(package="keras_bert3")
class BertAdam(DecoupledAdam):
    """Adam without bias correction, with decoupled weight decay.

        p = p - lr (m / (sqrt(v) + eps) + decay p)

    as in google-research/bert optimization.py. The paper says "Adam"; the released code leaves out
    the bias correction, which makes the first updates up to sqrt(1 / (1 - b2)) times larger and
    warm-up necessary. Biases, gammas and betas of normalisations are not decayed; embeddings are.

    Args:
        learning_rate: a float or a schedule over updates (pretraining: 1e-4).
        weight_decay: 0.01.
        beta_1: 0.9.
        beta_2: 0.999.
        epsilon: 1e-6, added outside the root.
        global_clipnorm: largest norm of all gradients together (1.0).
        name: of the optimiser.
        kwargs: see `DecoupledAdam`.
    """

    def __init__(self, learning_rate=1e-4, name="bert_adam", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)

    def fused_step(self, learning_rate):
        """Return the rate, and a step that corrects nothing."""
        return learning_rate, fused_adam.ENDLESS


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTAdam(DecoupledAdam):
    """Adam with bias correction, and decoupled decay of matrices alone.

        p = p - lr sqrt(c2) / c1 (m / (sqrt(v) + eps) + decay p)

    as in openai/finetune-transformer-lm opt.py (Radford et al. 2018, section 4.1: "a modified
    version of L2 regularization ... on all non bias or gain weights"). Variables of one axis are
    not decayed; the embedding tables are. The correction scales the decay too.

    Args:
        learning_rate: a float or a schedule over updates (pretraining 2.5e-4, fine-tuning
            6.25e-5).
        matrix_decay: 0.01.
        epsilon: 1e-8, added outside the root.
        name: of the optimiser.
        kwargs: see `DecoupledAdam`.
    """

    def __init__(
        self, learning_rate=2.5e-4, matrix_decay=0.01, epsilon=1e-8, name="gpt_adam", **kwargs
    ):
        super().__init__(
            learning_rate, weight_decay=matrix_decay, epsilon=epsilon, name=name, **kwargs
        )

    @property
    def matrix_decay(self):
        """Decoupled decay of matrices."""
        return self.weight_decay

    def decays(self, variable) -> bool:
        """Whether a variable has more than one axis."""
        return len(variable.shape) > 1

    def scale(self, variable, change, is_decayed):
        """Return the bias correction."""
        return self._correction(variable.dtype)

    def fused_step(self, learning_rate):
        """Return the corrected rate, and a step that corrects nothing more."""
        return learning_rate * self._correction("float32"), fused_adam.ENDLESS

    def _correction(self, dtype):
        first, second = self._corrections(dtype)
        return ops.sqrt(second) / first

    def get_config(self):
        """The constructor's arguments."""
        config = super().get_config()
        config["matrix_decay"] = config.pop("weight_decay")
        return config


@keras.saving.register_keras_serializable(package="keras_bert3")
class Lamb(DecoupledAdam):
    """Adam whose step on each variable is as long as the variable, for very large batches.

        r = m / c1 / (sqrt(v / c2) + eps) + decay p
        p = p - lr |p| / |r| r

    You et al. 2020, algorithm 2, with the identity for phi. Where |p| or |r| is 0, and for norms
    and biases, which are not decayed either, the ratio is 1, as in the authors' code.

    Args:
        learning_rate: a float or a schedule over updates. The paper's table 4 for BERT: 5e-4 at a
            batch of 512, times sqrt(2) each time the batch doubles, 2^-2.5 at most at 32,768.
        weight_decay: 0.01.
        name: of the optimiser.
        kwargs: see `DecoupledAdam`.
    """

    def __init__(self, learning_rate=5e-4, name="lamb", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)

    def direction(self, m, v):
        """Return u(m, v), bias-corrected."""
        return self._corrected_direction(m, v)

    def scale(self, variable, change, is_decayed):
        """Return the trust ratio."""
        if not is_decayed:
            return 1.0
        length, step = (ops.sqrt(ops.sum(ops.square(x))) for x in (variable, change))
        known = ops.logical_and(length > 0, step > 0)
        return ops.where(known, length / ops.where(known, step, 1.0), 1.0)
