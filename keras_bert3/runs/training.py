"""Training through the phases of a run, going on where an earlier process was stopped."""

from collections.abc import Iterator
from pathlib import Path

from keras_bert3.runs.kept_presets import KeepPresets
from keras_bert3.runs.run_log import RunLog, keep_rows
from keras_bert3.training.callbacks import NaNGuard
from keras_bert3.training.checkpointing import Checkpoints, SaveCheckpoints, listening

# 128 + 15, by which shells and schedulers know that SIGTERM ended a process: not finished.
STOPPED_BY_SIGTERM = 143


def train(folder: Path, config, task, phases: list) -> None:
    """Train through all phases, one schedule and one count of steps over both.

    A Keras epoch is `config.log_every` steps, the last one of a phase perhaps fewer. Each leaves a
    row in `metrics.csv` and a checkpoint in `folder/checkpoints`. Where there are checkpoints
    already, training goes on after the latest, and ends with the same weights, bit for bit,
    as if it had never stopped.

    Args:
        folder: of the run.
        config: has `log_every` and `seed`, and perhaps `presets_every`, see `KeepPresets`.
        task: compiled.
        phases: see `Phase`; `training.forever(step)` yields the batches from a step on, the same
            in every process.

    Raises:
        SystemExit: with code 143, after a checkpoint, when SIGTERM asked the process to go.
    """
    checkpoints = Checkpoints(folder / "checkpoints")
    done, _ = checkpoints.restore(task)
    keep_rows(folder, done)
    if done:
        print(f"\nGoing on after step {done:,}", flush=True)
    first_step = 0
    with listening() as notice:
        for phase in phases:
            start = max(done - first_step, 0)
            if start < phase.steps:
                print(f"\n{phase.steps:,} steps of {phase.sequence_length} tokens", flush=True)
                _train_phase(folder, config, task, phase, checkpoints, first_step, start, notice)
            first_step += phase.steps


def _train_phase(folder, config, task, phase, checkpoints, first_step, start, notice):
    """Train from step `start` of a phase to its end, or until a notice arrives."""
    tokens = phase.training.batch_size * phase.sequence_length
    every = getattr(config, "presets_every", None)
    for begin, steps, epochs in stretches(start, phase.steps, config.log_every):
        log = RunLog(folder, tokens, first_step + begin, learning_rate_of(task.optimizer))
        guard = NaNGuard(first_step + begin, checkpoints)
        save = SaveCheckpoints(checkpoints, first_step + begin, config.seed, notice)
        keep = [KeepPresets(folder, every, first_step + begin)] if every else []
        # Anew for each call: Keras reads a few batches ahead of what it trains on.
        batches = phase.training.forever(begin)
        callbacks = [log, guard, *keep, save]
        task.fit(batches, steps_per_epoch=steps, epochs=epochs, callbacks=callbacks, shuffle=False)
        if notice.arrived:
            raise SystemExit(STOPPED_BY_SIGTERM)


def stretches(start: int, end: int, every: int) -> Iterator[tuple[int, int, int]]:
    """Cut steps into epochs that end at multiples of `every` and at `end`.

    Yields:
        `(first step, steps of an epoch, epochs)`.

    Example:
        >>> list(stretches(3, 25, 10))
        [(3, 7, 1), (10, 10, 1), (20, 5, 1)]
    """
    whole = min(-(-start // every) * every, end)
    if whole > start:
        yield start, whole - start, 1
    epochs, rest = divmod(end - whole, every)
    if epochs:
        yield whole, every, epochs
    if rest:
        yield end - rest, rest, 1


def learning_rate_of(optimizer):
    """Return a function from a count of updates to the rate of the next one."""
    rate = getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
    return rate if callable(rate) else lambda step: rate
