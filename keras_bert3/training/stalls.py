"""A run that stands still, because another process of it is gone or does not answer."""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable

import keras


class StallDetector(keras.callbacks.Callback):
    """End the process when no step has ended for long.

    A process that waits for one that hangs would wait for hours: a message between processes has no
    end of its own. Others that are dead are noticed sooner, see `processes`. Watched are the steps
    of an epoch after the second, so that compiling, saving and evaluating may take their time.

    Args:
        seconds: without the end of a step, or twenty times the longest so far, if that is more.
        end: what to do then; by default say so, show where the process stands, and end it.
    """

    def __init__(self, seconds: float = 50.0, end: Callable[[float], None] | None = None):
        super().__init__()
        self.seconds = seconds
        self.end = end or _end
        self.longest = 0.0
        self._ended: float | None = None  # when the last step did; None while nothing is watched
        self._count = 0
        self._stopped = threading.Event()

    def on_train_begin(self, logs=None):
        """Start to watch."""
        self._stopped.clear()
        threading.Thread(target=self._watch, daemon=True).start()

    def on_epoch_begin(self, epoch, logs=None):
        """The first step of an epoch may compile."""
        self._count, self._ended = 0, None

    def on_train_batch_end(self, batch, logs=None):
        """Note the time."""
        self._count += 1
        now = time.monotonic()
        if self._ended is not None:
            self.longest = max(self.longest, now - self._ended)
        self._ended = now if self._count > 1 else None

    def on_epoch_end(self, epoch, logs=None):
        """What follows is no step."""
        self._ended = None

    def on_train_end(self, logs=None):
        """Watch no more."""
        self._ended = None
        self._stopped.set()

    def _watch(self):
        while not self._stopped.wait(min(self.seconds / 5, 1.0)):
            ended = self._ended
            silent = 0.0 if ended is None else time.monotonic() - ended
            if silent > max(self.seconds, 20 * self.longest):
                self._ended = None
                self.end(silent)


def _end(seconds: float) -> None:
    print(
        f"\nNo step has ended for {seconds:.0f} seconds: another process of this run hangs, or the "
        "data do not come. Given the same command again, the run goes on after its last "
        "checkpoint. This process stands here:",
        file=sys.stderr,
        flush=True,
    )
    faulthandler.dump_traceback(file=sys.stderr)
    os._exit(1)
