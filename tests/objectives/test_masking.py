"""Masked language modelling: the rows of known faults, statistics, purity."""

import random

import numpy as np
import pytest

from keras_bert3.objectives.masking import mask_batch, mask_tokens, num_predictions

SPECIAL_IDS = range(5)
CLS, SEP, MASK = 2, 3, 4


def special_table(size):
    table = np.zeros(size, bool)
    table[list(SPECIAL_IDS)] = True
    return table


def batch_of(num_rows, length, vocabulary_size, seed=0):
    generator = np.random.default_rng(seed)
    token_ids = generator.integers(5, vocabulary_size, (num_rows, length)).astype(np.int32)
    token_ids[:, 0], token_ids[:, -1] = CLS, SEP
    return token_ids


def masked(token_ids, indices=None, padding_mask=None, vocabulary_size=100, **settings):
    token_ids = np.asarray(token_ids, np.int32)
    padding_mask = token_ids != 0 if padding_mask is None else padding_mask
    indices = np.arange(len(token_ids)) if indices is None else indices
    settings = {"max_predictions": token_ids.shape[1], "seed": 1, **settings}
    return mask_batch(
        token_ids,
        padding_mask,
        indices,
        is_special=special_table(vocabulary_size),
        mask_id=MASK,
        **settings,
    )


def chosen_sets(batch):
    return [
        set(positions[weights > 0].tolist())
        for positions, weights in zip(batch.mask_positions, batch.weights, strict=True)
    ]


def test_number_to_predict_rounds_half_to_even_as_python_does():
    lengths = np.arange(2, 600)
    for rate, limit in ((0.15, 20), (0.25, 1000), (0.5, 76)):
        expected = [min(limit, max(1, int(round(int(n) * rate)))) for n in lengths]
        assert num_predictions(lengths, rate, limit).tolist() == expected


def test_L1_special_tokens_and_padding_are_never_chosen():
    token_ids = [[CLS, 10, 11, SEP, 0, 0, 0, 0]] * 200
    batch = masked(token_ids, rate=1.0)
    assert chosen_sets(batch) == [{1, 2}] * 200
    assert batch.mask_positions[:, :2].tolist() == [[1, 2]] * 200
    assert batch.labels[:, :2].tolist() == [[10, 11]] * 200
    assert not batch.mask_positions[:, 2:].any() and not batch.labels[:, 2:].any()
    unmasked = [0, 3, 4, 5, 6, 7]
    assert (batch.token_ids[:, unmasked] == np.array(token_ids)[:, unmasked]).all()


def test_L1_padding_is_never_chosen_whatever_stands_there():
    token_ids = batch_of(300, 20, 100)
    padding_mask = np.arange(20) < np.arange(300)[:, None] % 15 + 3
    batch = masked(token_ids, padding_mask=padding_mask, rate=0.9)
    for row, chosen in enumerate(chosen_sets(batch)):
        assert chosen and all(padding_mask[row, position] for position in chosen)


@pytest.mark.parametrize("whole_words", [False, True])
def test_L2_statistics_of_100_000_tokens(whole_words):
    vocabulary_size = 30000
    token_ids = batch_of(2000, 50, vocabulary_size)
    # As many words of two pieces as keep the number to predict within reach.
    is_continuation = np.arange(vocabulary_size) % 10 == 7
    batch = masked(
        token_ids,
        vocabulary_size=vocabulary_size,
        whole_words=whole_words,
        is_continuation=is_continuation,
    )
    count = batch.weights.sum()
    # 50 * 0.15 = 7.5 rounds to 8, of 50 tokens.
    assert count / token_ids.size == pytest.approx(8 / 50, abs=0.005)
    row, slot = np.nonzero(batch.weights)
    shown = batch.token_ids[row, batch.mask_positions[row, slot]]
    label = batch.labels[row, slot]
    assert (shown == MASK).sum() / count == pytest.approx(0.8, abs=0.01)
    assert (shown == label).sum() / count == pytest.approx(0.1, abs=0.01)
    random_tokens = shown[(shown != MASK) & (shown != label)]
    assert len(random_tokens) / count == pytest.approx(0.1, abs=0.01)
    assert random_tokens.mean() == pytest.approx(vocabulary_size / 2, rel=0.05)
    assert (label == token_ids[row, batch.mask_positions[row, slot]]).all()


def test_L2_share_is_15_percent_and_the_mix_is_exact_to_half_a_point():
    token_ids = batch_of(2500, 40, 30000)  # 100,000 tokens, 40 * 0.15 = 6
    batch = masked(token_ids, vocabulary_size=30000, max_predictions=20)
    assert batch.weights.sum() == 0.15 * token_ids.size
    many = batch_of(20000, 40, 30000)
    batch = masked(many, vocabulary_size=30000, max_predictions=20)
    row, slot = np.nonzero(batch.weights)
    shown, label = batch.token_ids[row, batch.mask_positions[row, slot]], batch.labels[row, slot]
    shares = [(shown == MASK).mean(), (shown == label).mean()]
    assert shares == pytest.approx([0.8, 0.1], abs=0.005)


def test_every_position_is_chosen_equally_often():
    batch = masked(batch_of(20000, 22, 100))
    counts = np.bincount(batch.mask_positions[batch.weights > 0], minlength=22)
    expected = batch.weights.sum() / 20
    assert counts[0] == counts[21] == 0
    assert np.abs(counts[1:21] - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize(
    "mix", [(0.8, 0.1, 0.1), (1, 0, 0), (0.8, 0, 0.2), (0.8, 0.2, 0), (0, 0.2, 0.8), (0, 0, 1)]
)
def test_the_mixes_of_the_ablation(mix):
    batch = masked(batch_of(3000, 40, 30000), vocabulary_size=30000, probabilities=mix)
    row, slot = np.nonzero(batch.weights)
    shown, label = batch.token_ids[row, batch.mask_positions[row, slot]], batch.labels[row, slot]
    shares = [(shown == MASK).mean(), (shown == label).mean()]
    shares.append(1 - sum(shares))
    assert shares == pytest.approx(mix, abs=0.01)


def test_L3_random_tokens_come_from_the_whole_vocabulary_or_from_the_ordinary_ids():
    token_ids = batch_of(2500, 50, 100)
    settings = {"probabilities": (0, 0, 1), "rate": 0.9}
    published = masked(token_ids, **settings)
    excluded = masked(token_ids, exclude_special_replacements=True, **settings)
    counts = []
    for batch in (published, excluded):
        row, slot = np.nonzero(batch.weights)
        shown = batch.token_ids[row, batch.mask_positions[row, slot]]
        assert len(shown) > 100_000
        counts.append(np.bincount(shown, minlength=100))
    assert counts[0].min() > 900 and counts[1][5:].min() > 900
    assert counts[1][:5].sum() == 0


def test_L4_sentencepiece_words_are_chosen_together_or_not_at_all():
    # One word of three pieces among words of one: "▁un" "aff" "able".
    token_ids = np.tile([CLS, 10, 11, 12, 13, 14, 15, 16, SEP, 0], (4000, 1))
    word_ids = np.tile([-1, 0, 1, 1, 1, 2, 3, 4, -1, -1], (4000, 1))
    batch = masked(token_ids, rate=0.5, whole_words=True, word_ids=word_ids)
    together = [chosen & {2, 3, 4} for chosen in chosen_sets(batch)]
    assert {len(pieces) for pieces in together} == {0, 3}
    assert {len(chosen) for chosen in chosen_sets(batch)} == {4}


def test_L5_chinese_words_are_chosen_together_when_words_are_given():
    token_ids = np.tile([CLS, 20, 21, 22, 23, SEP], (500, 1))  # 语 言 模 型
    words = np.tile([-1, 0, 0, 1, 1, -1], (500, 1))
    given = chosen_sets(masked(token_ids, rate=0.34, whole_words=True, word_ids=words))
    assert {frozenset(chosen) for chosen in given} == {frozenset({1, 2}), frozenset({3, 4})}
    # Without them every character is a word, as its docstring says.
    no_pieces = np.zeros(100, bool)
    alone = chosen_sets(masked(token_ids, rate=0.34, whole_words=True, is_continuation=no_pieces))
    assert len({frozenset(chosen) for chosen in alone}) == 6


def test_L6_weights_are_zero_when_nothing_can_be_chosen():
    batch = masked([[CLS, SEP, 0, 0], [CLS, 9, SEP, 0]], max_predictions=3)
    assert batch.weights.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert batch.labels[0].tolist() == [0, 0, 0]
    assert batch.token_ids[0].tolist() == [CLS, SEP, 0, 0]
    nothing = masked([[CLS, SEP]], whole_words=True, is_continuation=np.zeros(100, bool))
    assert not nothing.weights.any()
    # The loss of section 3.1, with the epsilon of the released code: 0, not NaN.
    losses = np.full(nothing.weights.shape, np.log(5))
    assert (nothing.weights * losses).sum() / (nothing.weights.sum() + 1e-5) == 0.0


def greedy_words(token_ids, special, continuation, limit, order_of_first):
    """Choose words as published, on a given order; one word at least."""
    words = []
    for position, token in enumerate(token_ids):
        if special[token]:
            words.append(None)
        elif words and words[-1] is not None and continuation[token]:
            words[-1].append(position)
        else:
            words.append([position])
    words = sorted((w for w in words if w), key=lambda word: order_of_first[word[0]])
    chosen = []
    for word in words:
        if len(chosen) + len(word) <= limit:
            chosen += word
    if words and not chosen:
        chosen = min(words, key=len)
    return sorted(chosen)


def test_whole_words_equal_a_plain_loop_on_the_same_order():
    from keras_bert3.objectives.counter_random import random_bits

    size = 60
    generator = np.random.default_rng(5)
    is_continuation = np.zeros(size, bool)
    is_continuation[5:25] = True
    token_ids = generator.integers(3, size, (400, 30)).astype(np.int32)
    token_ids[:, 0] = CLS
    lengths = generator.integers(2, 31, 400)
    padding_mask = np.arange(30) < lengths[:, None]
    batch = masked(
        token_ids,
        padding_mask=padding_mask,
        vocabulary_size=size,
        max_predictions=5,
        whole_words=True,
        is_continuation=is_continuation,
    )
    orders = random_bits(1, 0, np.arange(400)[:, None], np.arange(30))
    for row, chosen in enumerate(chosen_sets(batch)):
        length = int(lengths[row])
        expected = greedy_words(
            token_ids[row, :length],
            special_table(size),
            is_continuation,
            min(5, max(1, round(length * 0.15))),
            orders[row],
        )
        assert sorted(chosen) == expected[:5]


def test_a_row_with_one_long_word_still_has_a_prediction():
    token_ids = [[CLS, 10, 50, 50, 50, SEP]]
    is_continuation = np.arange(100) == 50
    options = {"whole_words": True, "is_continuation": is_continuation}
    assert chosen_sets(masked(token_ids, **options)) == [{1, 2, 3, 4}]
    assert chosen_sets(masked(token_ids, max_predictions=2, **options)) == [{1, 2}]


def test_words_do_not_reach_across_special_tokens():
    token_ids = np.tile([CLS, 10, SEP, 50, SEP], (200, 1))
    is_continuation = np.arange(100) == 50
    batch = masked(token_ids, whole_words=True, is_continuation=is_continuation)
    assert {frozenset(chosen) for chosen in chosen_sets(batch)} == {frozenset({1}), frozenset({3})}


@pytest.mark.parametrize("whole_words", [False, True])
def test_a_row_depends_on_its_index_and_not_on_its_batch(whole_words):
    token_ids = batch_of(64, 40, 100)
    options = {"whole_words": whole_words, "is_continuation": np.arange(100) % 3 == 0}
    indices = np.arange(64) * 1000
    all_rows = masked(token_ids, indices, **options)
    order = np.random.default_rng(1).permutation(64)[:17]
    some_rows = masked(token_ids[order], indices[order], **options)
    for whole, part in zip(all_rows, some_rows, strict=True):
        assert (whole[order] == part).all()
    assert chosen_sets(masked(token_ids, indices + 1, **options)) != chosen_sets(all_rows)
    assert chosen_sets(masked(token_ids, indices, seed=2, **options)) != chosen_sets(all_rows)


def test_trailing_padding_changes_nothing():
    token_ids = batch_of(50, 30, 100)
    longer = np.pad(token_ids, ((0, 0), (0, 10)))
    short, long = masked(token_ids, max_predictions=9), masked(longer, max_predictions=9)
    assert (short.mask_positions == long.mask_positions).all()
    assert (short.token_ids == long.token_ids[:, :30]).all()


def test_types_order_and_untouched_input():
    token_ids = batch_of(30, 40, 100)
    before = token_ids.copy()
    batch = masked(token_ids, max_predictions=8)
    assert (token_ids == before).all()
    types = [part.dtype for part in batch]
    assert types == [np.int32, np.int32, np.int32, np.float32]
    assert batch.mask_positions.shape == batch.labels.shape == batch.weights.shape == (30, 8)
    used = batch.weights.sum(1).astype(int)
    for positions, count in zip(batch.mask_positions, used, strict=True):
        assert (np.diff(positions[:count]) > 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probabilities": (0.8, 0.1, 0.2)}, "that sum to 1"),
        ({"probabilities": (1.2, -0.1, -0.1)}, "that sum to 1"),
        ({"max_predictions": 0}, "max_predictions >= 1"),
        ({"whole_words": True}, "is_continuation or word_ids"),
        ({"indices": np.arange(3)}, r"example_indices of shape \(2,\)"),
        ({"padding_mask": np.ones((2, 4), bool)}, r"one shape \[batch, length\]"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        masked(batch_of(2, 6, 100), **settings)


def test_sequences_too_long_for_the_sort_key_are_refused():
    with pytest.raises(ValueError, match="less than 65536 tokens. Received: 65536"):
        masked(np.ones((1, 65536), int))


def test_one_sequence_leaves_specials_alone_and_sorts_positions():
    table, pieces = special_table(50), np.zeros(50, bool)
    tokens = [CLS, *range(10, 40), SEP]
    made = mask_tokens(tokens, table, pieces, MASK, 50, 20, rng=random.Random(1))
    assert len(made.mask_positions) == 5  # round(32 * 0.15)
    assert made.mask_positions == sorted(made.mask_positions)
    assert made.labels == [tokens[i] for i in made.mask_positions]
    assert not {0, 31} & set(made.mask_positions)
    others = [i for i in range(32) if i not in made.mask_positions]
    assert [made.token_ids[i] for i in others] == [tokens[i] for i in others]
    assert tokens == [CLS, *range(10, 40), SEP]


def runs_of(chosen):
    """Lengths of the runs of neighbours in a set of positions."""
    runs, last = [], None
    for position in sorted(chosen):
        if position - 1 != last:
            runs.append(0)
        runs[-1] += 1
        last = position
    return runs


def test_groups_of_n_words_come_as_often_as_one_over_n():
    token_ids = batch_of(3000, 102, 100)
    settings = {"longest_group": 3, "seed": 3}
    whole = masked(token_ids, rate=1.0, **settings)  # every group that the walk places
    runs = np.concatenate([runs_of(chosen) for chosen in chosen_sets(whole)])
    odds = np.bincount(runs, minlength=7)[1:]
    # Groups of two windows may touch, and the end of a row may cut one: 1/n within 3 %.
    share = np.array([6, 3, 2]) / 11
    np.testing.assert_allclose(odds[:3] / odds.sum(), share, atol=0.03)
    taken = whole.weights.sum() / (3000 * 100)
    assert 0.16 < taken < 0.18, "n of 6 n words, and more in the short last window"
    batch = masked(token_ids, **settings)
    counts = batch.weights.sum(1)
    assert counts.max() == 15 and counts.mean() > 14.9, "the last group is taken in part"
    assert all(
        chosen <= every
        for chosen, every in zip(chosen_sets(batch), chosen_sets(whole), strict=True)
    )


def test_groups_fall_anywhere_in_a_row():
    batch = masked(batch_of(4000, 62, 100), longest_group=3)
    hits = np.bincount(batch.mask_positions[batch.weights > 0], minlength=62)[1:-1] / 4000
    assert abs(hits.mean() - 0.15) < 0.002
    inner = hits[4:-4].reshape(4, 13).mean(1)
    np.testing.assert_allclose(inner, 0.15, atol=0.02)


def test_L4_pieces_of_any_tokenizer_go_together_in_groups_too():
    # pieces 10 to 39 begin words (as SentencePiece's U+2581 does), 40 to 99 continue them
    continues = np.arange(100) >= 40
    token_ids = batch_of(500, 60, 100)
    joined = continues[token_ids]
    for settings in ({}, {"longest_group": 3}):
        batch = masked(token_ids, whole_words=True, is_continuation=continues, **settings)
        for row, chosen in zip(joined, chosen_sets(batch), strict=True):
            words, current = [], None
            for position in range(1, 59):
                if not row[position] or current is None:
                    current = []
                    words.append(current)
                current.append(position)
            touched = [word for word in words if chosen & set(word)]
            assert all(set(word) <= chosen for word in touched) or len(touched) == 1


def test_groups_are_a_function_of_seed_and_example_alone():
    token_ids = batch_of(8, 40, 100)
    settings = {"longest_group": 3}
    together = chosen_sets(masked(token_ids, indices=np.arange(8), **settings))
    padded = np.pad(token_ids[5:6], ((0, 0), (0, 9)))
    alone = masked(padded, indices=np.array([5]), max_predictions=40, **settings)
    assert chosen_sets(alone) == [together[5]]
    other = chosen_sets(masked(token_ids, indices=np.arange(8, 16), **settings))
    assert all(a != b for a, b in zip(together, other, strict=True))
    with pytest.raises(ValueError, match="longest_group >= 1. Received.*longest_group=0"):
        masked(token_ids, longest_group=0)
