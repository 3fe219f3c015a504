"""Learning rates over a run. All count updates, whatever the number of micro-steps in one."""

import math

import keras
from keras import ops


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up and what follows it, both functions of the share of updates done.

    A subclass implements `rate(share, warmup, is_warming)`.

    Args:
        peak: the rate that warm-up aims at.
        warmup_steps: updates until it is reached.
        total_steps: updates of the whole run.

    Raises:
        ValueError: unless 0 <= warmup_steps <= total_steps.
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
        return self.peak * self.rate(step, warming, share)

    def rate(self, step, warming, share):
        """Return the share of `peak`.

        Args:
            step: number of the update, float32.
            warming: step / warmup_steps.
            share: step / total_steps, 1 at most.
        """
        raise NotImplementedError

    def get_config(self):
        """The constructor's arguments."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class WarmupLinearDecay(Warmup):
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

    def rate(self, step, warming, share):
        """Rise, then fall in a straight line."""
        return ops.where(step < self.warmup_steps, warming, 1.0 - share)


@keras.saving.register_keras_serializable(package="keras_bert3")
class WarmupCosineDecay(Warmup):
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

    def rate(self, step, warming, share):
        """Rise, then fall along a cosine."""
        decaying = 0.5 * (1.0 + ops.cos(math.pi * share))
        return ops.where(step <= (self.warmup_steps or -1), warming, decaying)


@keras.saving.register_keras_serializable(package="keras_bert3")
class WarmupTimesLinearDecay(Warmup):
    """Linear decay to 0, multiplied by a linear warm-up.

        lr(t) = peak * min(t / warmup_steps, 1) * (1 - t / total_steps)

    GPT-1's fine-tuning, `warmup_linear` of openai/finetune-transformer-lm opt.py: without a jump,
    and with a largest rate a little below the peak.

    Args:
        peak: 6.25e-5 (Radford et al. 2018, section 4.1).
        warmup_steps: 0.2 % of the updates (there).
        total_steps: updates of the whole run.
    """

    def rate(self, step, warming, share):
        """Rise and fall at once."""
        factor = ops.minimum(warming, 1.0) if self.warmup_steps else 1.0
        return factor * (1.0 - share)
