"""One process of two that train together; `PAIR_FOLDER` says where they write.

After four steps both go on, and the second is told to go: both stop after the same step. They go on
once more, and the second is lost without a word; the first must notice.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

ROWS, VOCABULARY = 8, 25
STEPS = 4
FOREVER = 10**6


class Batches:
    """Batches of a step; at one of them the process is told to go, or lost."""

    batch_size = ROWS

    def __init__(self, at=None, signal=None):
        self.at = at
        self.signal = signal

    def forever(self, step=0):
        from tests.tasks import toy

        for number in itertools.count(step):
            if number == self.at:
                os.kill(os.getpid(), self.signal)
            yield toy.batch(ROWS, seed=number)


class Course:
    @staticmethod
    def make_task(config, tokenizer):
        from keras_bert3.runs import scaling
        from keras_bert3.tasks.masked_lm import MaskedLM
        from keras_bert3.training.optimizers import BertAdam
        from tests.tasks import toy

        task = MaskedLM(toy.backbone(vocabulary_size=VOCABULARY))
        optimizer = BertAdam(1e-2, epsilon=1e-3)
        task.compile(**scaling.compile_settings(task, optimizer, config.accumulate))
        return task


def phase(steps, *ending):
    return SimpleNamespace(sequence_length=12, steps=steps, training=Batches(*ending))


def start(folder, **settings):
    """What a run starts with: its scale, settings and task."""
    import keras

    from keras_bert3.runs import scaling

    given = {"accumulate": 1, "log_every": 1, "seed": 1, "batch_size": ROWS, "output": str(folder)}
    config = SimpleNamespace(**{**given, **settings})
    scale = scaling.start(config, [ROWS])
    keras.utils.set_random_seed(0)
    folder.mkdir(exist_ok=True)
    words = SimpleNamespace(vocabulary_size=VOCABULARY)
    return scale, config, scaling.make_task(folder, Course, config, words, scale)


def values(task):
    """What a checkpoint keeps, whole."""
    from keras_bert3.training.checkpointing import whole_value

    return [whole_value(variable) for variable in [*task.variables, *task.optimizer.variables]]


def dropped(strategy):
    """What dropout leaves of ones on this process (TensorFlow)."""
    import keras
    import numpy as np
    import tensorflow as tf

    from keras_bert3.training.multi_worker import own_random_numbers

    with strategy.scope():
        dropout = keras.layers.Dropout(0.5, seed=1)
        dropout.build((64,))
        with own_random_numbers():
            once = tf.function(lambda: dropout(keras.ops.ones(64), training=True))
            found = strategy.run(once)
    return np.asarray(strategy.experimental_local_results(found)[0])


def main():
    import numpy as np

    from keras_bert3.runs.training import train
    from keras_bert3.training.checkpointing import whole_value

    folder = Path(os.environ["PAIR_FOLDER"])
    scale, config, task = start(folder, **json.loads(os.environ.get("PAIR_SETTINGS", "{}")))
    train(folder, config, task, [phase(STEPS)], scale)
    found = {f"value-{i:03d}": value for i, value in enumerate(values(task))}
    found["gathered"] = np.array(scale.gathered(2**40 * scale.processes.index - 1))
    if scale.is_first:
        shutil.copytree(folder / "checkpoints", folder / "kept")
    while not (folder / "kept").exists():  # as a launcher waits for all before it starts again
        time.sleep(0.05)
    if scale.strategy:
        found["dropped"] = dropped(scale.strategy)

    def told(sent):
        return () if scale.is_first else (STEPS + 3, sent)

    try:
        train(folder, config, task, [phase(FOREVER, *told(signal.SIGTERM))], scale)
    except SystemExit as stop:
        found["stopped"] = np.array([stop.code, whole_value(task.optimizer._iterations)])
    np.savez(folder / f"process-{scale.processes.index}.npz", **found)
    if not scale.is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    train(folder, config, task, [phase(FOREVER)], scale)
    sys.exit("the loss of a process was not noticed")


if __name__ == "__main__":
    main()
