"""What a run says while it trains: progress bar, metrics.csv and TensorBoard."""

import csv
import os
import time
from pathlib import Path

import keras

from keras_bert3.training import flops
from keras_bert3.training.checkpointing import whole_value


class RunLog(keras.callbacks.Callback):
    """Log each epoch, also to the callbacks that follow; show tokens per second as it goes.

    Args:
        folder: gets `metrics.csv`, one row an epoch, and event files for TensorBoard.
        tokens_per_step: tokens of a batch, padding included.
        first_step: steps taken before this training began, by an earlier phase.
        learning_rate: a function from step to rate, logged beside the metrics.
        flops_per_token: see `training.flops`; 0 where nobody has counted.

    Raises:
        ImportError: at the start of training, if tensorboard is not installed.
    """

    def __init__(
        self, folder, tokens_per_step, first_step=0, learning_rate=None, flops_per_token=0.0
    ):
        super().__init__()
        self.folder = Path(folder)
        self.tokens_per_step = tokens_per_step
        self.step = first_step
        self.learning_rate = learning_rate
        self.flops_per_token = flops_per_token

    def on_train_begin(self, logs=None):
        """Open the event file."""
        try:
            from tensorboard.summary import Writer
        except ImportError as error:
            raise ImportError(
                "Logging for TensorBoard needs the package tensorboard: "
                "pip install 'keras-bert3[recipes]'"
            ) from error
        self.writer = Writer(str(self.folder / "tensorboard"))

    def on_epoch_begin(self, epoch, logs=None):
        """Start the clock."""
        self.timed_steps, self.started = 0, None

    def on_train_batch_end(self, batch, logs=None):
        """Count; the first step of an epoch is not timed, as it may compile."""
        self.step += 1
        if self.started is None:
            self.started = time.perf_counter()
            return
        self.timed_steps += 1
        if logs is not None:
            logs["tokens_per_second"] = self._speed()

    def _speed(self):
        elapsed = time.perf_counter() - (self.started or 0.0)
        return round(self.timed_steps * self.tokens_per_step / elapsed) if elapsed else 0

    def on_epoch_end(self, epoch, logs=None):
        """Write a row and the same values as scalars."""
        row = {"step": self.step, **{k: float(v) for k, v in (logs or {}).items()}}
        if self.learning_rate is not None:
            row["learning_rate"] = float(self.learning_rate(self.step - 1))
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        if hasattr(optimizer, "gradient_norm"):  # of the last update, before clipping
            row["gradient_norm"] = float(whole_value(optimizer.gradient_norm))
        row["tokens_per_second"] = self._speed()
        row |= self._arithmetic(row["tokens_per_second"])
        self._append(row)
        if logs is not None:
            logs.update({name: value for name, value in row.items() if name != "step"})
        for name, value in row.items():
            if name != "step":
                self.writer.add_scalar(name, value, self.step)
        self.writer.flush()

    def _arithmetic(self, speed):
        """Operations a second of all devices, and their share of what the devices can do."""
        if not self.flops_per_token:
            return {}
        done, peak = speed * self.flops_per_token, flops.peak_of(flops.device_name())
        share = (
            {} if peak is None else {"model_flops_utilisation": done / peak / flops.device_count()}
        )
        return {"model_teraflops": done / 1e12, **share}

    def _append(self, row):
        """Add a row; a run that goes on has the columns that it began with."""
        path = self.folder / "metrics.csv"
        is_new = not path.exists()
        text = "" if is_new else path.read_text(encoding="utf-8")
        names = list(row) if is_new else text.partition("\n")[0].strip().split(",")
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=names, extrasaction="ignore")
            if is_new:
                writer.writeheader()
            writer.writerow(row)

    def on_train_end(self, logs=None):
        """Close the event file."""
        self.writer.close()


def keep_rows(folder, step):
    """Cut `metrics.csv` back to what was logged up to `step`, where a run goes on from there.

    A row that a killed process wrote in part goes too; with none left, so does the file.
    """
    path = Path(folder) / "metrics.csv"
    if not path.exists():
        return
    header, *rows = path.read_text(encoding="utf-8").split("\n")
    width = header.count(",")
    whole = [row for row in rows[:-1] if row.count(",") == width]  # what follows \n is a torn row
    kept = [row for row in whole if int(row.split(",")[0]) <= step]
    if not kept:
        path.unlink()
        return
    part = path.with_name(path.name + ".part")
    part.write_text("\n".join([header, *kept, ""]), encoding="utf-8")
    os.replace(part, path)
