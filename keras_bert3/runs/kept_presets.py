"""What a run was at several of its steps: presets beside the last one."""

import json
from pathlib import Path

import keras

_FOLDER = "presets"


class KeepPresets(keras.callbacks.Callback):
    """Save a preset at step 0 and at the end of each epoch whose step is a multiple of `every`.

    It stands before `SaveCheckpoints` in the list of callbacks: a process that ends between the two
    saves the same preset again.

    Args:
        run: the folder of the run, which gets `presets/step-00000000` and so on.
        every: steps from one to the next.
        first_step: updates taken before this training began.
    """

    def __init__(self, run: Path, every: int, first_step: int = 0):
        super().__init__()
        self.run = Path(run)
        self.every = every
        self.step = first_step

    def on_train_begin(self, logs=None):
        """Save what is there before the first update."""
        if self.step == 0:
            self._save()

    def on_train_batch_end(self, batch, logs=None):
        """Count."""
        self.step += 1

    def on_epoch_end(self, epoch, logs=None):
        """Save."""
        if self.step % self.every == 0:
            self._save()

    def _save(self):
        folder = self.run / _FOLDER / f"step-{self.step:08d}"
        self.model.save_to_preset(folder, overwrite=folder.exists())


def kept_presets(run: str | Path) -> dict[int, str]:
    """The presets of a run by their steps, in order; the last is the finished model.

    Raises:
        ValueError: for a folder without any.
    """
    run = Path(run)
    found = {int(path.name[5:]): str(path) for path in sorted((run / _FOLDER).glob("step-*"))}
    if (run / "preset").is_dir() and (run / "config.json").is_file():
        steps = json.loads((run / "config.json").read_text(encoding="utf-8"))["steps"]
        found[steps] = str(run / "preset")
    if not found:
        raise ValueError(f"Expected the folder of a pretraining run with presets. Received: {run}")
    return found
