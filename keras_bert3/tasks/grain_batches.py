"""Batches that the package grain makes, in `fit`, `evaluate` and `predict`."""

import keras


class GrainBatches(keras.utils.PyDataset):
    """A `grain.MapDataset` of batches, of which Keras does not know the length by itself.

    It would warn after each first epoch that the data has run out.

    Args:
        data: has a length, and a batch at each place: `x`, `(x, y)` or `(x, y, sample_weight)`.
    """

    def __init__(self, data):
        super().__init__()
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        batch = self.data[index]
        return batch if isinstance(batch, tuple) else (batch,)


def is_grain(data) -> bool:
    """Whether `data` is one of grain's datasets or loaders, which have an order of their own."""
    return any(cls.__module__.split(".")[0] == "grain" for cls in type(data).__mro__)


def with_length(data):
    """Return a `grain.MapDataset` as `GrainBatches`, and anything else as it is."""
    names = [cls.__name__ for cls in type(data).__mro__]
    return GrainBatches(data) if is_grain(data) and "MapDataset" in names else data
