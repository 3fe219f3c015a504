import threading

import keras
import numpy as np
import pytest

from keras_bert3.tasks.text_batches import TextBatches


def prepare(texts, labels, weights, indices, epoch):
    return texts, labels, weights, indices.tolist(), epoch


def test_every_text_comes_once_an_epoch_in_a_new_order():
    batches = TextBatches(list("abcdefg"), prepare, labels=range(7), batch_size=3, shuffle=True)
    assert len(batches) == 3
    orders = []
    for epoch in range(2):
        rows = [batches[i] for i in range(len(batches))]
        assert {row[4] for row in rows} == {epoch}
        for texts, labels, _, indices, _ in rows:
            assert [ord(t) - 97 for t in texts] == labels.tolist() == indices
        orders.append([index for row in rows for index in row[3]])
        batches.on_epoch_end()
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(7))
    assert orders[0] != orders[1]


def test_without_shuffling_the_order_is_the_given_one():
    batches = TextBatches((["a", "b"], ["c", "d"]), prepare, batch_size=2)
    texts, labels, weights, indices, _ = batches[0]
    assert (texts, labels, weights, indices) == ((["a", "b"], ["c", "d"]), None, None, [0, 1])


def test_D6_workers_are_threads_and_keep_the_order():
    threads = set()

    def lengths(texts, *rest):
        threads.add(threading.current_thread())
        return np.array([[len(text)] for text in texts], "float32"), None, None

    batches = TextBatches(["a" * n for n in range(1, 8)], lengths, batch_size=1)
    batches.workers = 2
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    np.testing.assert_array_equal(model.predict(batches, verbose=0)[:, 0], range(1, 8))
    assert not batches.use_multiprocessing and threads - {threading.main_thread()}


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match=r"Received: lengths \[2, 3\]"):
        TextBatches(["a", "b"], prepare, labels=np.zeros(3))
