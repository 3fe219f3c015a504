import numpy as np
import pytest

from keras_bert3.objectives import input_transformations as transform

S = transform.special_ids(100)
A, B, C = [1, 2, 3], [4, 5], [6]


def test_the_special_tokens_follow_the_vocabulary_in_the_released_order():
    assert transform.special_ids(40478) == (40478, 40479, 40480)


def test_the_four_transformations_of_figure_1():
    assert transform.classification(A, S) == [100, 1, 2, 3, 102]
    assert transform.entailment(A, B, S) == [100, 1, 2, 3, 101, 4, 5, 102]
    assert transform.similarity(A, B, S) == [
        [100, 1, 2, 3, 101, 4, 5, 102],
        [100, 4, 5, 101, 1, 2, 3, 102],
    ]
    assert transform.multiple_choice(A, B, [C, [7, 8]], S) == [
        [100, 1, 2, 3, 4, 5, 101, 6, 102],
        [100, 1, 2, 3, 4, 5, 101, 7, 8, 102],
    ]


def test_long_texts_are_cut_as_released_and_questions_kept():
    long = list(range(50))
    assert transform.classification(long, S, 10) == [100, *range(8), 102]
    assert transform.entailment(long, long, S, 10) == [100, 0, 1, 2, 101, 0, 1, 2, 102]
    assert transform.multiple_choice(long, [60, 61], [C], S, 10) == [[100, 0, 60, 61, 101, 6, 102]]
    for make in (
        lambda: transform.classification(A, S, 5),
        lambda: transform.entailment(A, B, S, 5),
        lambda: transform.multiple_choice(A, B, [C], S, 5),
    ):
        with pytest.raises(ValueError, match="max_length of at least 6.*Received: 5"):
            make()
    with pytest.raises(ValueError, match="at least one answer"):
        transform.multiple_choice(A, B, [], S)


def test_GP1_GP2_the_classifier_reads_the_classify_token_wherever_padding_is():
    rows = transform.multiple_choice(A, B, [C, [7, 8, 9]], S)
    packed = transform.pack_rows(rows, S, pad_id=0)
    assert packed["token_ids"].shape == (2, 11)
    assert packed["classify_positions"].tolist() == [8, 10]  # T - 1 in the longest row
    assert packed["padding_mask"].sum(1).tolist() == [9, 11]
    left = np.roll(packed["token_ids"][:1], 2, axis=1)
    assert transform.classify_positions(left, S.classify).tolist() == [10]
    assert transform.pack_rows(rows, S, 20)["token_ids"].shape == (2, 20)
    with pytest.raises(ValueError, match="at most 9 tokens. Received: one of 11"):
        transform.pack_rows(rows, S, 9)
    with pytest.raises(ValueError, match="the classify token 102 .*Received: row 1 without it"):
        transform.pack_rows([[102], [5]], S)


def test_the_auxiliary_loss_is_a_mean_over_rows_of_means_over_tokens():
    packed = transform.pack_rows(
        [transform.classification(A, S), transform.classification(C, S)], S
    )
    labels, weights = transform.auxiliary_lm_targets(packed["token_ids"], packed["padding_mask"])
    losses = np.random.default_rng(0).random(labels.shape)
    expected = (losses[0, :4].mean() + losses[1, :2].mean()) / 2
    np.testing.assert_allclose((losses * weights).sum(), expected, rtol=1e-6)
    assert labels[0, :4].tolist() == [1, 2, 3, 102] and labels[1, :2].tolist() == [6, 102]
    left, right = (np.roll(packed[name], 2, axis=1) for name in ("token_ids", "padding_mask"))
    shifted = transform.auxiliary_lm_targets(left[1:], right[1:])
    assert shifted[0][0][shifted[1][0] > 0].tolist() == [6, 102]


def test_soft_labels_keep_the_score_as_their_mean():
    scores = np.array([0.0, 3.8, 5.0, 2.5])
    labels = transform.soft_similarity_labels(scores)
    np.testing.assert_allclose(labels.sum(1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(labels @ np.arange(6), scores, rtol=1e-6)
    np.testing.assert_allclose(labels[1], [0, 0, 0, 0.2, 0.8, 0], atol=1e-6)
    with pytest.raises(ValueError, match="scores from 0 to 5. Received: scores from 5.1 to 5.1"):
        transform.soft_similarity_labels([5.1])
