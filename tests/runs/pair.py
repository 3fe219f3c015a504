"""One process of two that train together; `PAIR_FOLDER` says where they write.

The second process is lost after four steps, without a word; the first must notice.
"""

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

ROWS = 8


class Batches:
    batch_size = ROWS

    def forever(self, step=0):
        from tests.tasks import toy

        return (toy.batch(ROWS, seed=seed) for seed in itertools.count(step))


class Course:
    @staticmethod
    def make_task(config, tokenizer):
        from keras_bert3.runs import scaling
        from keras_bert3.tasks.masked_lm import MaskedLM
        from keras_bert3.training.optimizers import BertAdam
        from tests.tasks import toy

        task = MaskedLM(toy.backbone())
        optimizer = BertAdam(1e-2, epsilon=1e-3)
        task.compile(**scaling.compile_settings(task, optimizer, config.accumulate))
        return task


def phase(steps):
    return SimpleNamespace(sequence_length=12, steps=steps, training=Batches())


def train(folder, steps=4, **settings):
    """Train as a run does; the scale, and the weights of a copy on one device."""
    import keras

    from keras_bert3.runs import scaling
    from keras_bert3.runs.training import train
    from tests.layer_checks import to_numpy

    given = {"accumulate": 1, "log_every": 1, "seed": 1, "batch_size": ROWS, "output": str(folder)}
    config, words = SimpleNamespace(**{**given, **settings}), SimpleNamespace(vocabulary_size=24)
    scale = scaling.start(config, [ROWS])
    keras.utils.set_random_seed(0)
    folder.mkdir(exist_ok=True)
    task = scaling.make_task(folder, Course, config, words, scale)
    train(folder, config, task, [phase(steps)], scale)
    if scale.is_spread:
        values = [scaling.whole_value(variable) for variable in task.trainable_variables]
        return scale, config, task, values
    return scale, config, task, [to_numpy(variable) for variable in task.trainable_variables]


def main():
    folder = Path(os.environ["PAIR_FOLDER"])
    settings = json.loads(os.environ.get("PAIR_SETTINGS", "{}"))
    scale, config, task, values = train(folder, **settings)
    import numpy as np

    from keras_bert3.runs.training import train as go_on

    np.savez(folder / f"process-{scale.processes.index}.npz", *values)
    if not scale.is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    go_on(folder, config, task, [phase(10**6)], scale)
    sys.exit("the loss of a process was not noticed")


if __name__ == "__main__":
    main()
