"""What watches over a run."""

import math

import keras


class NaNGuard(keras.callbacks.Callback):
    """Stop at once when the loss is no longer finite, before a checkpoint keeps what is broken.

    It stands before `SaveCheckpoints` in the list of callbacks.

    Args:
        first_step: updates taken before this training began.
        checkpoints: a `Checkpoints`, to say which is the last good one; None where there is none.
        examples: a function from the number of an update before it, counted over the run, to the
            numbers of the examples that it sees; None where they have none.

    Raises:
        FloatingPointError: naming the loss, the step, its batch, its examples and the last
            checkpoint.
    """

    def __init__(self, first_step=0, checkpoints=None, examples=None):
        super().__init__()
        self.examples = examples
        self.step = self.first_step = first_step
        self.checkpoints = checkpoints

    def on_train_batch_end(self, batch, logs=None):
        """Look at the loss."""
        self.step += 1
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"Expected a finite loss. Received: {loss} at step {self.step:,}, batch "
                f"{self.step - 1 - self.first_step:,} since training began{self._seen()}. "
                f"{self._last()}"
            )

    def _seen(self):
        if self.examples is None:
            return ""
        return f", of the examples {', '.join(map(str, self.examples(self.step - 1)))}"

    def _last(self):
        saved = self.checkpoints.steps() if self.checkpoints is not None else []
        if self.checkpoints is None or not saved:
            return "There is no checkpoint before it."
        return f"The last checkpoint, of step {saved[-1]:,}, is in '{self.checkpoints.folder}'."


class PerUpdate(keras.callbacks.Callback):
    """Show another callback updates in place of batches, where several make one update.

    Args:
        callback: sees the last batch of each update alone, counted from 0 in an epoch.
        micro_steps: batches of an update.
    """

    def __init__(self, callback, micro_steps):
        super().__init__()
        self.callback = callback
        self.micro_steps = micro_steps

    def set_model(self, model):
        """Hand on."""
        super().set_model(model)
        self.callback.set_model(model)

    def set_params(self, params):
        """Hand on."""
        super().set_params(params)
        self.callback.set_params(params)

    def on_train_begin(self, logs=None):
        """Hand on."""
        self.callback.on_train_begin(logs)

    def on_train_end(self, logs=None):
        """Hand on."""
        self.callback.on_train_end(logs)

    def on_epoch_begin(self, epoch, logs=None):
        """Hand on."""
        self.callback.on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Hand on."""
        self.callback.on_epoch_end(epoch, logs)

    def on_train_batch_end(self, batch, logs=None):
        """Hand on the last batch of an update."""
        update, rest = divmod(batch + 1, self.micro_steps)
        if not rest:
            self.callback.on_train_batch_end(update - 1, logs)
