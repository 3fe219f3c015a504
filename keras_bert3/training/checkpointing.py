"""Exact resume: a run that was killed goes on to the weights it would have reached.

A checkpoint holds all that the next step depends on: weights, the optimisers' variables (the count
of updates, from which the schedule follows, the moments, gradients accumulated so far, the loss
scale), the states of the seed generators of dropout, the step, and notes, such as the best score.
Two things need no place in it, because they are functions of the step: the batches (`batches[step]`
is the same in every process) and, on PyTorch, whose dropout draws from one global generator, its
seed (`seed_torch`).
"""

import collections
import hashlib
import math
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert3.training import checkpoint_files as files
from keras_bert3.training.notice import Notice
from keras_bert3.training.task_state import assign, state_of
from keras_bert3.training.task_state import whole_value as whole_value


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: where they are.
        keep: how many of the latest are kept, the best one beside them.
        writes: False in all processes of a run but one; all call `save`, as each may hold a part.
        shared: from a number of this process to those of all, see `processes.gathered`; None for
            one process.

    Raises:
        ValueError: for `keep` below 1.

    Example:
        >>> checkpoints = Checkpoints("run/checkpoints")
        >>> step, notes = checkpoints.restore(task)
        >>> checkpoints.save(task, step + 100, score=loss)
    """

    def __init__(self, folder, keep=3, writes=True, shared=None):
        if keep < 1:
            raise ValueError(f"Expected to keep at least 1 checkpoint. Received: keep={keep}")
        self.folder = Path(folder)
        self.keep = keep
        self.writes = writes
        self.shared = shared or (lambda number: [number])
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future | None = None

    def save(self, task, step: int, score: float | None = None, wait=True, **notes) -> Path:
        """Write the state of a task after `step` updates; remove what is no longer kept.

        Args:
            task: a compiled `keras.Model`.
            step: updates taken.
            score: the lower, the better; the best checkpoint so far is kept.
            wait: until it is on the disk. Otherwise the state is copied, training goes on, and what
                goes wrong with the disk is raised by the next call.
            notes: what else to keep, as JSON.
        """
        self.wait()
        best = self.best()
        if score is not None and math.isfinite(score) and (not best or score < best["score"]):
            best = {"step": step, "score": score}
        state = state_of(task)
        notes = {**notes, "best": best, "backend": keras.backend.backend(), "names": list(state)}
        values = ((f"{i:05d}", whole_value(v)) for i, v in enumerate(state.values()))
        if not self.writes:
            collections.deque(values, maxlen=0)  # the other processes need the shards of this one
            return files.path_of(self.folder, step)
        # The backends change variables in place, also under an array that shares their memory.
        arrays = {name: x if x.flags.owndata else np.array(x) for name, x in values}
        self._writing = self._writer.submit(self._write, step, arrays, notes)
        if wait:
            self.wait()
        return files.path_of(self.folder, step)

    def _write(self, step, arrays, notes):
        files.write(self.folder, step, arrays, notes)
        best, latest = notes["best"], files.steps(self.folder)[-self.keep :]
        files.remove_all_but(self.folder, {*latest, best["step"] if best else step})

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk; raise what went wrong with it."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, in order."""
        self.wait()
        return files.steps(self.folder)

    def best(self) -> dict[str, Any] | None:
        """Return `{"step": ..., "score": ...}` of the best checkpoint, None where none has one."""
        for step in reversed(self.steps()):
            try:
                return files.describe(files.path_of(self.folder, step))["notes"]["best"]
            except files.BrokenCheckpoint:
                continue
        return None

    def restore(self, task, weights_only=False, step: int | None = None) -> tuple[int, dict]:
        """Give a task the state of the latest checkpoint that is whole to all processes.

        A broken one is named in a printed line, and the one before it is used.

        Args:
            task: compiled, of the same architecture, optimiser and precision.
            weights_only: leave the optimiser as it is: it starts afresh, and says so.
            step: of the checkpoint to take; None for the latest.

        Returns:
            The step and the notes; `(0, {})`, and the task unchanged, where there is no checkpoint.

        Raises:
            ValueError: if the checkpoint is of another model, optimiser or backend; or if there
                are checkpoints, and none is whole to all.
        """
        self.wait()
        wanted = files.steps(self.folder) if step is None else [step]
        found = self._agreed(wanted)
        if found is None:
            return 0, {}
        arrays, number, notes = found
        assign(task, arrays, notes, weights_only, files.path_of(self.folder, number))
        if weights_only:
            print(f"Weights of step {number:,}; the optimiser starts afresh.", flush=True)
        return number, notes

    def _agreed(self, wanted):
        """Read the latest of some checkpoints that is whole to all processes, None for none.

        One may see the latest torn, or, on a disk that is shared, not yet.
        """
        among = wanted
        while True:
            found = self._latest(among)
            steps = self.shared(-1 if found is None else found[1])
            agreed = min(steps)
            if agreed < 0 and (wanted or max(steps) >= 0):
                seen = ", ".join("none" if step < 0 else f"step {step:,}" for step in steps)
                raise ValueError(
                    f"Expected a whole checkpoint in '{self.folder}', the same to all processes. "
                    f"Received: {len(wanted)} of which the latest whole one is {seen}"
                )
            if agreed == max(steps):
                return found
            print(f"Not all processes see a checkpoint later than step {agreed:,}.", flush=True)
            among = [step for step in among if step <= agreed]

    def _latest(self, wanted):
        """Read the latest of the `wanted` checkpoints that is whole, None for none."""
        for step in reversed(wanted):
            try:
                return files.read(files.path_of(self.folder, step))
            except files.BrokenCheckpoint as error:
                print(f"A broken checkpoint is passed over. {error}", flush=True)
        return None


def seed_torch(seed: int, step: int, process: int = 0) -> None:
    """Seed PyTorch's global generator for a step; nothing on other backends.

    Dropout on PyTorch draws from that generator, as do things that happen as often as a process
    starts, such as the making of a data loader. A seed for each step makes its masks the same after
    any number of restarts. Processes that share a step have seeds of their own.
    """
    if keras.backend.backend() != "torch":
        return
    import torch

    name = f"{seed}/{step}/{process}" if process else f"{seed}/{step}"
    digest = hashlib.sha256(name.encode()).digest()
    torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


class SaveCheckpoints(keras.callbacks.Callback):
    """Save a checkpoint at the end of each epoch; end an epoch early when the process must go.

    Args:
        checkpoints: a `Checkpoints`.
        first_step: updates taken before this training began.
        seed: of the run.
        notice: a `Notice`; training stops after the update under way, with a checkpoint.
        micro_steps: batches of an update, where gradients are accumulated.
        monitor: the metric whose lowest value is the best.
        process: index of this process among those that share a batch.
    """

    def __init__(
        self,
        checkpoints,
        first_step=0,
        seed=0,
        notice=None,
        micro_steps=1,
        monitor="loss",
        process=0,
    ):
        super().__init__()
        self.checkpoints = checkpoints
        self.seed = seed
        self.notice = notice or Notice()
        self.micro_steps = micro_steps
        self.monitor = monitor
        self.process = process
        self.batches = first_step * micro_steps

    def on_train_batch_begin(self, batch, logs=None):
        """Make the step's randomness its own."""
        seed_torch(self.seed, self.batches, self.process)

    def on_train_batch_end(self, batch, logs=None):
        """Count; end the epoch here if the process must go, never between micro-steps."""
        self.batches += 1
        if self.batches % self.micro_steps == 0 and self.notice.seen(self.batches):
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        """Save."""
        score = (logs or {}).get(self.monitor)
        step = self.batches // self.micro_steps
        score = None if score is None else float(score)
        self.checkpoints.save(self.model, step, score, wait=self.notice.arrived)
        if self.notice.arrived:
            print(f"\nSIGTERM: saved a checkpoint of step {step:,}.", flush=True)
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        """Leave with the last checkpoint on the disk."""
        self.checkpoints.wait()
