"""The optimisers of google-research/bert and of GPT-1."""

import keras
from keras import ops

_NOT_DECAYED = ("bias", "gamma", "beta")


@keras.saving.register_keras_serializable(package="keras_bert3")
class BertAdam(keras.optimizers.AdamW):
    """Adam without bias correction, with decoupled weight decay.

        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g^2
        p = p - lr (m / (sqrt(v) + eps) + decay p)

    as in google-research/bert optimization.py. The paper says "Adam"; the released code leaves out
    the bias correction, which makes the first updates up to sqrt(1 / (1 - b2)) times larger and
    warm-up necessary. Biases, gammas and betas of normalisations are not decayed; embeddings are.

    Args:
        learning_rate: a number or a schedule over updates (pretraining: 1e-4).
        weight_decay: 0.01.
        beta_1: 0.9.
        beta_2: 0.999.
        epsilon: 1e-6, added outside the root.
        global_clipnorm: largest norm of all gradients together (1.0).
    """

    def __init__(
        self,
        learning_rate=1e-4,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        name="bert_adam",
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            global_clipnorm=global_clipnorm,
            name=name,
            **kwargs,
        )
        self.exclude_from_weight_decay(var_names=list(_NOT_DECAYED))

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable; its decay has been applied by the base class."""
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        self.assign_sub(variable, rate * m / (ops.sqrt(v) + self.epsilon))


@keras.saving.register_keras_serializable(package="keras_bert3")
class GPTAdam(keras.optimizers.Adam):
    """Adam with bias correction, and decoupled decay of matrices alone.

        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g^2
        p = p - lr sqrt(1 - b2^t) / (1 - b1^t) (m / (sqrt(v) + eps) + decay p),  t = 1, 2, ...

    as in openai/finetune-transformer-lm opt.py (Radford et al. 2018, section 4.1: "a modified
    version of L2 regularization ... on all non bias or gain weights"). Variables of one axis are
    not decayed; the embedding tables are. The correction scales the decay too.

    Args:
        learning_rate: a number or a schedule over updates (pretraining 2.5e-4, fine-tuning
            6.25e-5).
        matrix_decay: 0.01.
        beta_1: 0.9.
        beta_2: 0.999.
        epsilon: 1e-8, added outside the root.
        global_clipnorm: largest norm of all gradients together (1.0).
    """

    def __init__(
        self,
        learning_rate=2.5e-4,
        matrix_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
        global_clipnorm=1.0,
        name="gpt_adam",
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            global_clipnorm=global_clipnorm,
            name=name,
            **kwargs,
        )
        self.matrix_decay = matrix_decay

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable."""
        dtype = variable.dtype
        gradient, step = ops.cast(gradient, dtype), ops.cast(self.iterations + 1, dtype)
        first, second = (
            1 - ops.power(ops.cast(b, dtype), step) for b in (self.beta_1, self.beta_2)
        )
        rate = ops.cast(learning_rate, dtype) * ops.sqrt(second) / first
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        change = m / (ops.sqrt(v) + self.epsilon)
        if len(variable.shape) > 1:
            change = change + self.matrix_decay * variable
        self.assign_sub(variable, rate * change)

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "matrix_decay": self.matrix_decay}
