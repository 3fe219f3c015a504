"""Being asked to go: SIGTERM, by which clusters announce that a process is about to end."""

import contextlib
import importlib
import signal
import threading
from collections.abc import Iterator

import keras

from keras_bert3.training.processes import ALONE, Processes


class Notice:
    """Whether the process was asked to go.

    Attributes:
        arrived: True from then on; with several processes, once all of them know.
    """

    arrived = False

    def seen(self, step: int) -> bool:
        """Whether to stop after `step`; where there are several processes, all say the same."""
        return self.arrived


class _JaxNotice(Notice):
    """JAX takes the signal, and agrees with the other processes on a step ahead of all."""

    def seen(self, step):
        utilities = importlib.import_module("jax.experimental.multihost_utils")
        self.arrived = self.arrived or utilities.reached_preemption_sync_point(step)
        return self.arrived


class _TorchNotice(Notice):
    """Processes tell each other after every step whether one was asked to go."""

    asked = False

    def seen(self, step):
        torch, distributed = map(importlib.import_module, ("torch", "torch.distributed"))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        asked = torch.tensor(float(self.asked), device=device)
        distributed.all_reduce(asked, op=distributed.ReduceOp.MAX)
        self.arrived = bool(asked.item())
        return self.arrived


class _TensorFlowNotice(Notice):
    """As on PyTorch, by the strategy that also adds up gradients."""

    asked = False

    def __init__(self, strategy):
        self.strategy = strategy

    def seen(self, step):
        tf = importlib.import_module("tensorflow")
        asked = self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(float(self.asked))
        )
        self.arrived = bool(self.strategy.reduce("SUM", asked, axis=None))
        return self.arrived


@contextlib.contextmanager
def listening(processes: Processes = ALONE, strategy=None) -> Iterator[Notice]:
    """Take SIGTERM as a notice; a second one ends the process.

    Signals reach the main thread alone; elsewhere nothing is listened for.

    Args:
        processes: of the run.
        strategy: of TensorFlow, where it has several processes.
    """
    several = keras.backend.backend() if processes.number > 1 else None
    notices = {
        "jax": _JaxNotice,
        "torch": _TorchNotice,
        "tensorflow": lambda: _TensorFlowNotice(strategy),
    }
    notice = notices.get(several or "", Notice)()

    def take(number, frame):
        setattr(notice, "asked" if hasattr(notice, "asked") else "arrived", True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    in_main_thread = threading.current_thread() is threading.main_thread()
    if several == "jax" or not in_main_thread:
        yield notice
        return
    before = signal.signal(signal.SIGTERM, take)
    try:
        yield notice
    finally:
        signal.signal(signal.SIGTERM, before)
