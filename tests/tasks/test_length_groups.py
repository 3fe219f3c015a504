import keras
import numpy as np
import pytest

from keras_bert3.tasks import length_groups
from keras_bert3.tasks.length_groups import grouped_order, lengths_of
from keras_bert3.tasks.text_classifier import TextClassifier
from tests.tasks import toy

LENGTHS = np.random.default_rng(0).integers(1, 100, 211)


def test_every_text_comes_once_beside_texts_of_its_length(monkeypatch):
    monkeypatch.setattr(length_groups, "POOL", 10)
    orders = [grouped_order(LENGTHS, 8, np.random.default_rng(epoch)) for epoch in range(2)]
    for order in orders:
        assert sorted(order) == list(range(211))
        batches = LENGTHS[order[:208]].reshape(26, 8)
        # Unsorted batches of 8 of these span 78 on average; 80 texts in order, about 10.
        assert np.ptp(batches, axis=1).mean() < 20
        assert not np.array_equal(batches.max(1), np.sort(batches.max(1))[::-1])
    assert not np.array_equal(*orders)


def test_what_is_left_over_are_the_longest_in_every_epoch():
    for rng in (None, np.random.default_rng(1)):
        last = grouped_order(LENGTHS, 8, rng)[-3:]
        assert sorted(LENGTHS[last]) == sorted(LENGTHS)[-3:]


@pytest.mark.parametrize("count", [0, 3, 4, 8])
def test_few_texts(count):
    assert sorted(grouped_order(range(count), 4, np.random.default_rng(0))) == list(range(count))


def test_lengths_of_pairs_and_choices_add_up():
    columns = [["abc", "d"], [["e", "fghi"], ["j"]]]
    np.testing.assert_array_equal(lengths_of(columns), [3 + 4, 1 + 1])


def test_X2_jax_compiles_at_most_once_more_than_there_are_lengths():
    traces = []

    class Counted(TextClassifier):
        def compute_loss(self, x=None, *arguments, **named):
            traces.append(x["token_ids"].shape)
            return super().compute_loss(x, *arguments, **named)

    task = Counted(toy.backbone(), 2, toy.masked_lm().preprocessor_class(toy.tokenizer()))
    task.preprocessor.max_sequence_length = 12
    task.preprocessor.pad_to_multiple_of = 6
    words = "the cat sat on a mat and it ran".split()
    texts = [" ".join(words[: 1 + i % 9]) for i in range(11)]
    batches = task.batches(texts, [0, 1] * 5 + [0], batch_size=2, by_length=True)
    task.fit(batches, epochs=3, verbose=0)
    assert {tuple(shape) for shape in traces} == {(2, 6), (2, 12), (1, 12)}
    if keras.backend.backend() == "jax":  # and once in symbols
        assert len(traces) == 3 + 1
