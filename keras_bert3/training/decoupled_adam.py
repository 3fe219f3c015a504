"""Adam with decoupled weight decay: what all `optimizers` share."""

import math

import keras
from keras import ops

from keras_bert3.training import fused_adam, replicas
from keras_bert3.training.layer_groups import factors_of

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
        factors = factors_of(self.rate_factors, [variable.path for variable in variables])
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
        """Return c1 and c2 of the present update.

        As 1 - b^t = -expm1(t log b): 1 - 0.999 in float32 is off by 5e-5 of itself.
        """
        step = ops.cast(self.iterations + 1, dtype)
        return [-ops.expm1(step * math.log(b)) if b else 1.0 for b in (self.beta_1, self.beta_2)]

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
