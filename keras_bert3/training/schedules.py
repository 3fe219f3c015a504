"""Learning rates over a run."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert3")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then linear decay to 0.

        lr(t) = peak * t / warmup_steps      for t < warmup_steps
        lr(t) = peak * (1 - t / total_steps) from there on

    as in google-research/bert optimization.py: the decay counts from step 0, so the rate falls by
    the factor 1 - warmup_steps / total_steps where warm-up ends, and the first update has
    rate 0.

    Args:
        peak: the rate that warm-up aims at (BERT pretraining: 1e-4).
        warmup_steps: updates until it is reached (10,000).
        total_steps: updates of the whole run (1,000,000).
    """

    def __init__(self, peak, warmup_steps, total_steps):
        if not 0 <= warmup_steps <= total_steps:
            raise ValueError(
                "Expected 0 <= warmup_steps <= total_steps. "
                f"Received: warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps

    def __call__(self, step):
        """Return the rate of update number `step`, counted from 0."""
        step = ops.cast(step, "float32")
        warming = step / max(self.warmup_steps, 1)
        decaying = ops.maximum(1.0 - step / max(self.total_steps, 1), 0.0)
        return self.peak * ops.where(step < self.warmup_steps, warming, decaying)

    def get_config(self):
        """The constructor's arguments."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class WarmupCosineDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then a half cosine to 0.

        lr(t) = peak * t / warmup_steps                          for t <= warmup_steps
        lr(t) = peak * (1 + cos(pi * t / total_steps)) / 2       from there on

    GPT-1 (Radford et al. 2018, section 4.1) as in openai/finetune-transformer-lm opt.py: the cosine
    counts from step 0, so that the rate falls a little where warm-up ends, and the first update has
    rate 0.

    Args:
        peak: the rate that warm-up aims at (GPT-1 pretraining: 2.5e-4).
        warmup_steps: updates until it is reached (2,000).
        total_steps: updates of the whole run.
    """

    def __init__(self, peak, warmup_steps, total_steps):
        if not 0 <= warmup_steps <= total_steps:
            raise ValueError(
                "Expected 0 <= warmup_steps <= total_steps. "
                f"Received: warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps

    def __call__(self, step):
        """Return the rate of update number `step`, counted from 0."""
        step = ops.cast(step, "float32")
        warming = step / max(self.warmup_steps, 1)
        share = ops.minimum(step / max(self.total_steps, 1), 1.0)
        decaying = 0.5 * (1.0 + ops.cos(math.pi * share))
        is_warming = step <= (self.warmup_steps or -1)
        return self.peak * ops.where(is_warming, warming, decaying)

    def get_config(self):
        """The constructor's arguments."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }
