from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.data.language_model_batches import EvaluationWindows, LanguageModelBatches

# Four documents of 5, 7, 1 and 9 tokens; document d holds d * 100, d * 100 + 1, ...
LENGTHS = np.array([5, 7, 1, 9])
CORPUS = SimpleNamespace(
    tokens=np.concatenate([d * 100 + np.arange(n) for d, n in enumerate(LENGTHS)]).astype("<u2"),
    sentence_offsets=np.array([0, 2, 5, 12, 13, 20, 22]),
    document_offsets=np.array([0, 2, 3, 4, 6]),
)
CHOSEN = np.array([0, 2, 3])
STREAM = [*range(5), 200, *range(300, 309)]


def test_windows_run_through_chosen_documents_alone():
    batches = LanguageModelBatches(CORPUS, CHOSEN, 4, 64, seed=3)
    x, labels, weights = batches[5]
    windows = {tuple(STREAM[i : i + 5]) for i in range(len(STREAM) - 4)}
    rows = np.concatenate([x["token_ids"], labels[:, -1:]], 1)
    assert {tuple(row) for row in rows} == windows  # every place can come, and no other
    np.testing.assert_array_equal(x["token_ids"][:, 1:], labels[:, :-1])
    assert x["padding_mask"].all() and (weights == 1).all()
    assert (x["token_ids"].dtype, weights.dtype) == ("int32", "float32")


def test_a_batch_depends_on_seed_and_step_alone():
    one, other = (LanguageModelBatches(CORPUS, CHOSEN, 4, 8, seed=1) for _ in range(2))
    forward = [one[step][0]["token_ids"] for step in range(4)]
    for step in (3, 0, 2):
        np.testing.assert_array_equal(other[step][0]["token_ids"], forward[step])
    endless = other.forever(2)
    np.testing.assert_array_equal(next(endless)[0]["token_ids"], forward[2])
    assert not np.array_equal(forward[0], forward[1])
    different = LanguageModelBatches(CORPUS, CHOSEN, 4, 8, seed=2)[0][0]["token_ids"]
    assert not np.array_equal(forward[0], different)


def test_shards_are_parts_of_the_global_batch():
    whole = LanguageModelBatches(CORPUS, CHOSEN, 4, 8)
    parts = [whole.of_shard(4, k)[7] for k in range(4)]
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), whole[7][1])
    again = LanguageModelBatches(CORPUS, CHOSEN, 4, 8, 0, 4, 3)[7]
    np.testing.assert_array_equal(again[1], parts[3][1])


@pytest.mark.parametrize(("length", "batch_size"), [(4, 2), (3, 5), (14, 1), (20, 2)])
def test_evaluation_predicts_every_token_but_the_first_once(length, batch_size):
    batches = EvaluationWindows(CORPUS, CHOSEN, length, batch_size)
    predicted = []
    for x, labels, weights in batches:
        assert x["token_ids"].shape == labels.shape == (batch_size, length)
        assert not labels[weights == 0].any() and not x["token_ids"][~x["padding_mask"]].any()
        predicted += labels[weights == 1].tolist()
    assert predicted == STREAM[1:]
    assert len(list(batches)) == len(batches)


def test_wrong_arguments_are_named():
    for arguments, message in (
        ((15, 2), "more than sequence_length=15.*Received: 15 tokens"),
        ((0, 2), "Received: sequence_length=0"),
        ((4, 6, 0, 4), "divide batch_size.*batch_size=6, num_shards=4"),
    ):
        with pytest.raises(ValueError, match=message):
            LanguageModelBatches(CORPUS, CHOSEN, *arguments)
    with pytest.raises(IndexError, match="a step from 0"):
        LanguageModelBatches(CORPUS, CHOSEN, 4, 2)[-1]
    with pytest.raises(IndexError, match="a batch from 0 to 1"):
        EvaluationWindows(CORPUS, CHOSEN, 7, 1)[2]
