"""Batches: contents against a plain loop, purity, shards, epochs, evaluation."""

import itertools
import pickle
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.data.pretraining_batches import EvaluationBatches, PretrainingBatches
from keras_bert3.data.pretraining_examples import build_examples
from keras_bert3.data.tokenized_corpus import vocabulary_hash, write_tokenized_corpus

SIZE = 300
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(SIZE - 5))]


class Numbers(SimpleNamespace):
    """A stand-in tokenizer: the text "7 8" has the ids 7 and 8."""

    def __call__(self, texts):
        return [[int(number) for number in text.split()] for text in texts]


TOKENIZER = Numbers(
    vocabulary=TOKENS,
    vocabulary_size=SIZE,
    pad_id=0,
    cls_id=2,
    sep_id=3,
    mask_id=4,
    special_ids=(0, 1, 2, 3, 4),
    is_continuation=(np.arange(SIZE) % 4 == 3) & (np.arange(SIZE) > 4),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    generator = np.random.default_rng(1)
    documents = [
        [
            " ".join(map(str, generator.integers(5, SIZE, generator.integers(1, 20))))
            for _ in range(n)
        ]
        for n in generator.integers(2, 20, 25)
    ]
    return write_tokenized_corpus(tmp_path_factory.mktemp("c") / "corpus", documents, TOKENIZER)


@pytest.fixture(scope="module")
def pairs(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("e") / "pairs.npy"
    return build_examples(corpus, range(corpus.num_documents), path, 40, 2)


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("e") / "runs.npy"
    return build_examples(corpus, range(corpus.num_documents), path, 40, 2, next_sentence=False)


def restored(batch):
    """Undo the masks: the token ids of each row."""
    inputs, labels, weights = batch
    token_ids = inputs["token_ids"].copy()
    row, slot = np.nonzero(weights["masked_lm"])
    token_ids[row, inputs["mask_positions"][row, slot]] = labels["masked_lm"][row, slot]
    return token_ids


def plain_sequence(corpus, example):
    first, first_length, second, second_length, _ = example
    tokens = [2, *corpus.tokens[first : first + first_length], 3]
    if second_length:
        tokens += [*corpus.tokens[second : second + second_length], 3]
    return tuple(int(token) for token in tokens) + (0,) * (40 - len(tokens))


def assert_equal(left, right):
    for a, b in zip(left, right, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            assert (a[name] == b[name]).all(), name


def test_names_shapes_and_types(corpus, pairs):
    inputs, labels, weights = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 8)[0]
    described = [
        {name: (array.shape, array.dtype.name) for name, array in part.items()}
        for part in (inputs, labels, weights)
    ]
    assert described == [
        {
            "token_ids": ((8, 40), "int32"),
            "segment_ids": ((8, 40), "int32"),
            "padding_mask": ((8, 40), "bool"),
            "mask_positions": ((8, 6), "int32"),
        },
        {"masked_lm": ((8, 6), "int32"), "next_sentence": ((8,), "int32")},
        {"masked_lm": ((8, 6), "float32"), "next_sentence": ((8,), "float32")},
    ]
    assert weights["next_sentence"].tolist() == [1.0] * 8


def test_without_pairs_there_is_no_next_sentence(corpus, runs):
    inputs, labels, weights = PretrainingBatches(corpus, runs, TOKENIZER, 40, 8)[0]
    assert list(labels) == list(weights) == ["masked_lm"]
    assert not inputs["segment_ids"].any()


@pytest.mark.parametrize("kind", ["pairs", "runs"])
def test_an_epoch_shows_every_example_once(corpus, kind, request):
    examples = request.getfixturevalue(kind)
    count = len(examples)
    batches = PretrainingBatches(corpus, examples, TOKENIZER, 40, 16, seed=3)
    assert len(batches) == -(-count // 16)
    rows = [row for step in range(2 * len(batches)) for row in restored(batches[step]).tolist()]
    expected = Counter(plain_sequence(corpus, example) for example in examples)
    first, second = rows[:count], rows[count : 2 * count]
    assert Counter(map(tuple, first)) == Counter(map(tuple, second)) == expected
    assert first != second


def test_labels_of_pairs_follow_the_table(corpus, pairs):
    batches = PretrainingBatches(corpus, pairs, TOKENIZER, 40, len(pairs))
    inputs, labels, _ = batches[0]
    made = zip(map(tuple, restored(batches[0]).tolist()), labels["next_sentence"], strict=True)
    table = ((plain_sequence(corpus, example), example[4]) for example in pairs)
    assert Counter(made) == Counter(table)
    assert (inputs["padding_mask"] == (inputs["token_ids"] != 0)).mean() > 0.99


@pytest.mark.parametrize("whole_words", [False, True])
def test_batches_are_pure_whatever_their_size_order_and_process(corpus, pairs, whole_words):
    settings = {"seed": 5, "whole_words": whole_words}
    large = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 32, **settings)
    small = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 8, **settings)
    last = len(large) + 2
    for step in (last, 0, 3):
        parts = [small[4 * step + i] for i in range(4)]
        joined = [
            {name: np.concatenate([part[i][name] for part in parts]) for name in large[0][i]}
            for i in range(3)
        ]
        assert_equal(large[step], joined)
    again = pickle.loads(pickle.dumps(large))
    assert_equal(large[last], again[last])


def test_shards_are_slices_of_the_global_batch(corpus, pairs):
    whole = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 12)
    shards = [whole.of_shard(3, shard) for shard in range(3)]
    for step in (0, len(whole) - 1, len(whole) + 5):
        parts = [shard[step] for shard in shards]
        joined = [
            {name: np.concatenate([part[i][name] for part in parts]) for name in whole[0][i]}
            for i in range(3)
        ]
        assert_equal(whole[step], joined)
    assert all(len(shard) == len(whole) for shard in shards)


def test_each_epoch_masks_anew(corpus, runs):
    count = len(runs)
    batches = PretrainingBatches(corpus, runs, TOKENIZER, 40, count, seed=1)
    masks = []
    for epoch in range(2):
        batch = batches[epoch]
        rows = zip(restored(batch).tolist(), batch[0]["mask_positions"].tolist(), strict=True)
        masks.append({tuple(row): positions for row, positions in rows if row.count(0) < 10})
    same = [masks[0][row] == masks[1][row] for row in masks[0]]
    assert len(same) > 50 and sum(same) < 0.1 * len(same)


def test_other_seed_other_order_and_masks(corpus, pairs):
    made = [PretrainingBatches(corpus, pairs, TOKENIZER, 40, 8, seed=seed)[0] for seed in (0, 1)]
    assert (made[0][0]["token_ids"] != made[1][0]["token_ids"]).any()


def test_a_batch_may_be_larger_than_the_table(corpus, pairs):
    table = pairs[:3]
    batches = PretrainingBatches(corpus, table, TOKENIZER, 40, 10)
    rows = restored(batches[0]).tolist()
    expected = Counter(plain_sequence(corpus, example) for example in table)
    for epoch in range(3):
        assert Counter(map(tuple, rows[3 * epoch : 3 * epoch + 3])) == expected


def test_forever_starts_anywhere_and_does_not_end(corpus, pairs):
    batches = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 8)
    for step, batch in zip(range(7, 12), batches.forever(7), strict=False):
        assert_equal(batch, batches[step])
    assert len(list(itertools.islice(iter(batches), len(batches) + 5))) == len(batches) + 5
    with pytest.raises(IndexError, match="Received: -1"):
        batches[-1]


def test_evaluation_shows_every_example_once_with_fixed_masks(corpus, pairs):
    batches = EvaluationBatches(corpus, pairs, TOKENIZER, 40, 16, seed=2)
    made = list(batches)
    assert len(made) == len(batches) == -(-len(pairs) // 16)
    rows = [row for batch in made for row in restored(batch).tolist()][: len(pairs)]
    assert rows == [list(plain_sequence(corpus, example)) for example in pairs]
    assert_equal(batches[1], made[1])
    other_size = EvaluationBatches(corpus, pairs, TOKENIZER, 40, 4, seed=2)
    assert_equal(
        [{name: array[:4] for name, array in part.items()} for part in batches[0]], other_size[0]
    )
    used = len(pairs) - 16 * (len(batches) - 1)
    assert 0 < used < 16
    weights = made[-1][2]
    assert weights["next_sentence"].tolist() == [1] * used + [0] * (16 - used)
    assert weights["masked_lm"][:used].any(1).all() and not weights["masked_lm"][used:].any()
    assert made[-1][0]["padding_mask"].any(1).all()
    with pytest.raises(IndexError, match="Received"):
        batches[len(batches)]


def test_mask_options_reach_the_masks(corpus, pairs):
    settings = {"rate": 0.5, "probabilities": (0, 0, 1), "exclude_special_replacements": True}
    inputs, _, weights = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 300, **settings)[0]
    assert inputs["mask_positions"].shape == (300, 20)
    share = weights["masked_lm"].sum() / inputs["padding_mask"].sum()
    assert share == pytest.approx(0.5, abs=0.03)
    assert not (inputs["token_ids"] == 4).any()


def test_L7_the_loss_divides_by_predictions_and_not_by_slots(corpus, pairs):
    import keras

    inputs, labels, weights = PretrainingBatches(corpus, pairs, TOKENIZER, 40, 4, 30)[0]
    assert 0 < weights["masked_lm"].mean() < 0.3
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    logits = np.zeros((*labels["masked_lm"].shape, 5), np.float32)
    value = loss(labels["masked_lm"] % 5, logits, sample_weight=weights["masked_lm"])
    assert float(keras.ops.convert_to_numpy(value)) == pytest.approx(np.log(5), abs=1e-5)


def test_L8_options_are_kept_or_refused(corpus, pairs):
    batches = PretrainingBatches(
        corpus, pairs, TOKENIZER, sequence_length=48, batch_size=64, whole_words=True
    )
    inputs, _, weights = batches[0]
    assert inputs["token_ids"].shape[1] % 8 == 0
    token_ids, continues = restored(batches[0]), TOKENIZER.is_continuation
    chosen = np.zeros(token_ids.shape, bool)
    row, slot = np.nonzero(weights["masked_lm"])
    chosen[row, inputs["mask_positions"][row, slot]] = True
    inside = continues[token_ids[:, 1:]] & (token_ids[:, :-1] > 4)
    assert inside.sum() > 100
    assert (chosen[:, 1:][inside] == chosen[:, :-1][inside]).all()
    with pytest.raises(TypeError, match="pad_to_multiple_of"):
        PretrainingBatches(corpus, pairs, TOKENIZER, 40, 8, pad_to_multiple_of=8)  # type: ignore


def test_N1_label_0_is_the_real_next_sentence(corpus, pairs):
    bounds = corpus.sentence_offsets[corpus.document_offsets]
    documents = np.searchsorted(bounds, pairs[:, [0, 2]], "right")
    same = Counter(
        (plain_sequence(corpus, example), int(a != b))
        for example, (a, b) in zip(pairs, documents, strict=True)
    )
    batch = EvaluationBatches(corpus, pairs, TOKENIZER, 40, len(pairs))[0]
    rows = map(tuple, restored(batch).tolist())
    made = Counter(zip(rows, batch[1]["next_sentence"].tolist(), strict=True))
    assert made == same


def test_the_real_tokenizer_fits(tmp_path):
    from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

    tokenizer = WordPieceTokenizer([*TOKENS[:5], "hello", "world", "##s", "."])
    documents = [["Hello worlds.", "Worlds hello."], ["hello", "world hello hello"]]
    corpus = write_tokenized_corpus(tmp_path / "corpus", documents, tokenizer)
    assert corpus.vocabulary_sha256 == vocabulary_hash(tokenizer.vocabulary)
    table = build_examples(corpus, range(2), tmp_path / "examples.npy", 16)
    batches = PretrainingBatches(corpus, table, tokenizer, 16, 4, whole_words=True)
    assert set(np.unique(restored(batches[0]))) <= {0, 2, 3, 5, 6, 7, 8}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence_length": 39}, "sequence_length=39 tokens. Received: one of 40"),
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"batch_size": 8, "num_shards": 3}, "divide batch_size"),
        ({"num_shards": 2, "shard": 2}, "shard < num_shards"),
        ({"probabilities": (1, 1, 1)}, "that sum to 1"),
        ({"max_predictions": 0}, "max_predictions >= 1"),
        ({"examples": np.zeros((0, 5), int)}, r"shape \[n, 5\]"),
        ({"examples": np.array([[0, 5, 10**6, 5, 0]])}, "reach beyond"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(corpus, pairs, settings, message):
    settings = {"examples": pairs, "sequence_length": 40, "batch_size": 8, **settings}
    with pytest.raises(ValueError, match=message):
        PretrainingBatches(corpus, tokenizer=TOKENIZER, **settings)


def test_another_vocabulary_is_refused(corpus, pairs):
    other = Numbers(**{**vars(TOKENIZER), "vocabulary": [*TOKENS[:-1], "other"]})
    with pytest.raises(ValueError, match="Expected the vocabulary of the corpus"):
        PretrainingBatches(corpus, pairs, other, 40, 8)
