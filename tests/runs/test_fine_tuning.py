from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.runs.fine_tuning import BestEpoch, append_rows, balanced_weights


def train(scores, patience=None):
    """Go through epochs as `fit` does; an epoch's weights are its number."""
    model = SimpleNamespace(stop_training=False, epoch=0)
    model.get_weights = lambda: [np.array(model.epoch)]
    values = iter(scores)
    best = BestEpoch(lambda: {"f1": next(values)}, patience)
    best.set_model(model)
    for epoch in range(len(scores)):
        model.epoch = epoch + 1
        best.on_epoch_begin(epoch)
        best.on_epoch_end(epoch, {"loss": 1.0})
        if model.stop_training:
            break
    return best


@pytest.mark.parametrize(
    ("patience", "epochs", "kept"), [(None, 6, 6), (1, 3, 2), (2, 4, 2), (4, 6, 6)]
)
def test_training_stops_without_progress_and_the_best_epoch_is_kept(patience, epochs, kept):
    best = train([0.1, 0.5, 0.4, 0.5, 0.3, 0.6], patience)
    assert [row["epoch"] for row in best.rows] == list(range(1, epochs + 1))
    assert best.best["epoch"] == kept and best.weights == [kept]


def test_every_class_counts_as_much_as_any_other():
    labels = ["a", "b", "b", "c", "b", "a"]
    weights = balanced_weights(labels)
    sums = {name: sum(weights[np.array(labels) == name]) for name in "abc"}
    assert sums == pytest.approx(dict.fromkeys("abc", 2.0))


def test_rows_with_new_columns_are_added_to_a_table(tmp_path):
    path = tmp_path / "metrics.csv"
    append_rows(path, [{"epoch": 1, "f1": 0.5}])
    append_rows(path, [{"epoch": 2, "loss": 0.25}])
    assert path.read_text().split() == ["epoch,f1,loss", "1,0.5,", "2,,0.25"]
