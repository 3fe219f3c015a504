"""Texts in memory, as batches for `fit`."""

import keras
import numpy as np

from keras_bert3.tasks.length_groups import grouped_order, lengths_of


class TextBatches(keras.utils.PyDataset):
    """Prepare texts batch by batch, in a new order each epoch.

    Order and preparation depend on the seed, the epoch and a text's index alone. More `workers` of
    `keras.utils.PyDataset` are threads here; processes forked beside an accelerator stand still.

    Args:
        texts: strings, or a pair of equally long lists of strings.
        prepare: `prepare(texts, labels, weights, indices, epoch)` returns `(x, y, sample_weight)`,
            arrays of one batch, the latter two None where there are none; texts is a list of
            strings or a pair of lists, indices are theirs.
        labels: an array or list with a label a text, or None.
        weights: an array with a weight a text, or None.
        batch_size: texts in a batch; the last one may be smaller.
        shuffle: whether the order changes from epoch to epoch.
        seed: of the order.
    """

    lengths = None

    def __init__(
        self, texts, prepare, labels=None, weights=None, batch_size=32, shuffle=False, seed=0
    ):
        super().__init__()
        self.columns = [list(column) for column in (texts if isinstance(texts, tuple) else [texts])]
        self.prepare = prepare
        self.labels = None if labels is None else np.asarray(labels)
        self.weights = None if weights is None else np.asarray(weights)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self._check_lengths()
        self.order = self._new_order()

    def _check_lengths(self):
        lengths = [len(c) for c in (*self.columns, self.labels, self.weights) if c is not None]
        if len(set(lengths)) > 1:
            raise ValueError(
                "Expected as many labels, weights and second texts as texts. "
                f"Received: lengths {lengths}"
            )

    def _new_order(self):
        indices = np.arange(len(self.columns[0]))
        rng = np.random.default_rng((self.seed, self.epoch)) if self.shuffle else None
        if self.lengths is not None:
            return grouped_order(self.lengths, self.batch_size, rng)
        if rng is not None:
            rng.shuffle(indices)
        return indices

    def by_length(self):
        """Let texts about as long as one another share a batch, see `grouped_order`.

        Returns:
            Itself.
        """
        self.lengths = lengths_of(self.columns)
        self.order = self._new_order()
        return self

    def __len__(self):
        return -(-len(self.order) // self.batch_size)

    def __getitem__(self, batch):
        indices = self.order[batch * self.batch_size : (batch + 1) * self.batch_size]
        columns = [[column[i] for i in indices] for column in self.columns]
        texts = tuple(columns) if len(columns) == 2 else columns[0]
        labels = None if self.labels is None else self.labels[indices]
        weights = None if self.weights is None else self.weights[indices]
        prepared = tuple(self.prepare(texts, labels, weights, indices, self.epoch))
        given = max(i for i, part in enumerate(prepared) if part is not None) + 1
        return prepared[:given]  # TensorFlow takes no None in a batch

    def on_epoch_end(self):
        """Reorder for the next epoch."""
        self.epoch += 1
        self.order = self._new_order()


def batches_by_length(texts, prepare, batch_size=None):
    """Batch texts that are about as long as one another, the longest first.

    Little padding is computed this way; the longest come first so that what does not fit into
    memory fails at once.

    Args:
        texts: a string, a list of strings, or a pair of equally long lists.
        prepare: see `TextBatches`.
        batch_size: texts in a batch (32).

    Returns:
        `TextBatches`, and which text stands at each place: int64 `[n]`.
    """
    texts = [texts] if isinstance(texts, str) else texts
    columns = texts if isinstance(texts, tuple) and not isinstance(texts[0], str) else (texts,)
    order = np.argsort(-lengths_of(columns), kind="stable")
    sorted_columns = tuple([column[i] for i in order] for column in columns)
    batches = TextBatches(
        sorted_columns if len(columns) == 2 else sorted_columns[0],
        lambda *batch: prepare(*batch[:-1], epoch=None),
        batch_size=batch_size or 32,
    )
    return batches, order
