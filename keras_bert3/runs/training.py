"""Training through the phases of a run, going on where an earlier process was stopped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert3.runs.kept_presets import KeepPresets
from keras_bert3.runs.run_log import RunLog, keep_rows
from keras_bert3.runs.scaling import ONE_DEVICE, Scale
from keras_bert3.training import multi_worker
from keras_bert3.training.callbacks import NaNGuard, PerUpdate
from keras_bert3.training.checkpointing import Checkpoints, SaveCheckpoints, whole_value
from keras_bert3.training.flops import flops_per_token
from keras_bert3.training.notice import Notice, listening
from keras_bert3.training.replicas import GlobalMetrics
from keras_bert3.training.stalls import StallDetector

# 128 + 15, by which shells and schedulers know that SIGTERM ended a process: not finished.
STOPPED_BY_SIGTERM = 143


def train(folder: Path, config, task, phases: list, scale: Scale = ONE_DEVICE) -> None:
    """Train through all phases, one schedule and one count of steps over both.

    A Keras epoch ends at each multiple of `config.log_every` steps and with a phase. Each leaves a
    row in `metrics.csv` and a checkpoint in `folder/checkpoints`. Where there are checkpoints
    already, training goes on after the latest, and ends with the same weights, bit for bit,
    as if it had never stopped.

    Args:
        folder: of the run.
        config: has `log_every` and `seed`, and perhaps `presets_every`, see `KeepPresets`.
        task: compiled.
        phases: see `Phase`; `training.forever(step)` yields the batches from a step on, the same
            in every process.
        scale: what the run is spread over.

    Raises:
        SystemExit: with code 143, after a checkpoint, when SIGTERM asked the process to go.
    """
    checkpoints = Checkpoints(folder / "checkpoints", writes=scale.is_first, shared=scale.gathered)
    done, _ = checkpoints.restore(task)
    if scale.is_first:
        keep_rows(folder, done)
    if done:
        print(f"\nGoing on after step {done:,}", flush=True)
    print(describe_decay(task), flush=True)
    first_step = 0
    with listening(scale.processes, scale.strategy) as notice:
        for phase in phases:
            start = max(done - first_step, 0)
            if start < phase.steps:
                print(f"\n{phase.steps:,} steps of {phase.sequence_length} tokens", flush=True)
                run = _Run(folder, config, task, checkpoints, notice, scale)
                _train_phase(run, phase, first_step, first_step + start)
            first_step += phase.steps


class _Run(NamedTuple):
    """What all phases share."""

    folder: Path
    config: Any
    task: Any
    checkpoints: Checkpoints
    notice: Notice
    scale: Scale


def _train_phase(run: _Run, phase, first_step: int, start: int):
    """Train from step `start` of the run to the end of a phase, or until a notice arrives."""
    scale, parts, end = run.scale, run.scale.parts, first_step + phase.steps
    for begin, steps, epochs in stretches(start, end, run.config.log_every):
        # Anew for each call: Keras reads a few batches ahead of what it trains on.
        batches, looked_at = (scale.batches(phase.training, begin - first_step) for _ in range(2))
        with multi_worker.fitting(run.task, scale.strategy, looked_at):
            run.task.fit(
                batches,
                steps_per_epoch=steps * parts,
                epochs=epochs,
                callbacks=_callbacks(run, phase, first_step, begin),
                shuffle=False,
                verbose="auto" if scale.is_first else 0,
            )
        if run.notice.arrived:
            raise SystemExit(STOPPED_BY_SIGTERM)


def _callbacks(run: _Run, phase, first_step: int, step: int) -> list:
    """What watches a stretch of training that begins after `step` updates of the run."""
    scale, every = run.scale, getattr(run.config, "presets_every", None)
    watching: list = [NaNGuard(step, run.checkpoints, examples_of(phase, first_step))]
    if scale.is_first:
        length = phase.sequence_length
        predicted = getattr(phase.training, "max_predictions", length) / length
        log = RunLog(
            run.folder,
            phase.training.batch_size * length,
            step,
            learning_rate_of(run.task.optimizer),
            flops_per_token(run.task, length, predicted),
        )
        watching = [log, *watching] + ([KeepPresets(run.folder, every, step)] if every else [])
    if scale.parts > 1:
        watching = [PerUpdate(one, scale.parts) for one in watching]
    save = SaveCheckpoints(
        run.checkpoints,
        step,
        run.config.seed,
        run.notice,
        scale.parts,
        process=scale.processes.index,
    )
    stalls = [StallDetector()] if scale.processes.number > 1 else []
    return [*stalls, GlobalMetrics(), *watching, save]


def examples_of(phase, first_step: int):
    """Return a function from a step of the run to the examples it sees, None where none count."""
    numbers = getattr(phase.training, "examples_of", None)
    return None if numbers is None else lambda step: numbers(step - first_step)


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


def describe_decay(task) -> str:
    """Say which kinds of variables are decayed and which are not; of our optimisers alone."""
    optimizer = getattr(task.optimizer, "inner_optimizer", task.optimizer)
    if not hasattr(optimizer, "decay_groups"):
        return ""
    groups = optimizer.decay_groups(task.trainable_variables)
    kinds = [", ".join(sorted({path.split("/")[-1] for path in group})) for group in groups]
    return (
        f"Weight decay {optimizer.weight_decay}: {len(groups[0])} variables ({kinds[0]}), "
        f"not {len(groups[1])} ({kinds[1]})"
    )


def learning_rate_of(optimizer):
    """Return a function from a count of updates to the rate of the next one."""
    rate = getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
    return rate if callable(rate) else lambda step: whole_value(rate)
