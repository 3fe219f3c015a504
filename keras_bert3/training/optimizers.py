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

from keras_bert3.training import fused_adam
from keras_bert3.training.decoupled_adam import DecoupledAdam as DecoupledAdam


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
