"""The published mode against a transcription of the published rules."""

import random
import warnings

import numpy as np
import pytest

from keras_bert3.data.published_instances import published_instances
from tests.data.published_oracle import create_instances

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocabulary_of(size, share_of_pieces):
    pieces = int(size * share_of_pieces)
    return SPECIALS + [f"##{i}" for i in range(pieces)] + [f"w{i}" for i in range(size - pieces)]


def corpus_of(vocabulary, seed, num_documents, most_sentences=9, most_tokens=25):
    rng = random.Random(seed)
    ordinary = vocabulary[5:]
    return [
        [
            [rng.choice(ordinary) for _ in range(rng.randint(0, most_tokens))]
            for _ in range(rng.randint(0, most_sentences))
        ]
        for _ in range(num_documents)
    ]


def ours(documents, vocabulary, rng, **settings):
    ids = {token: i for i, token in enumerate(vocabulary)}
    made = published_instances(
        [[[ids[token] for token in sentence] for sentence in document] for document in documents],
        rng,
        cls_id=2,
        sep_id=3,
        mask_id=4,
        is_continuation=np.array([token.startswith("##") for token in vocabulary]),
        **settings,
    )
    return [
        (
            [vocabulary[i] for i in instance.token_ids],
            instance.segment_ids,
            instance.mask_positions,
            [vocabulary[i] for i in instance.labels],
            instance.is_random,
        )
        for instance in made
    ]


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("length", [16, 64, 128])
@pytest.mark.parametrize(("size", "share"), [(20, 0.5), (200, 0.2), (3000, 0.0)])
@pytest.mark.parametrize("seed", [1, 12345])
def test_instances_equal_the_published_rules_one_for_one(seed, size, share, length, whole_words):
    vocabulary = vocabulary_of(size, share)
    documents = corpus_of(vocabulary, seed, 30)
    limit = max(2, int(length * 0.15))
    expected_rng, rng = random.Random(seed), random.Random(seed)
    expected = create_instances(
        documents, vocabulary, length, 3, 0.3, 0.15, limit, whole_words, expected_rng
    )
    made = ours(
        documents,
        vocabulary,
        rng,
        sequence_length=length,
        num_duplicates=3,
        short_probability=0.3,
        max_predictions=limit,
        whole_words=whole_words,
    )
    assert len(expected) > 50
    assert made == expected
    assert rng.getstate() == expected_rng.getstate()


def test_one_document_may_be_its_own_random_document_as_published():
    vocabulary = vocabulary_of(50, 0.2)
    documents = corpus_of(vocabulary, 3, 1, most_sentences=60, most_tokens=9)
    expected = create_instances(documents, vocabulary, 32, 2, 0.1, 0.15, 5, False, random.Random(9))
    made = ours(
        documents, vocabulary, random.Random(9), sequence_length=32, num_duplicates=2,
        max_predictions=5,
    )  # fmt: skip
    assert made == expected
    assert {instance[4] for instance in made} == {0, 1}


def test_N2_blank_line_after_every_sentence_makes_all_pairs_random_with_one_warning():
    vocabulary = vocabulary_of(50, 0.2)
    documents = [[["w1", "w2"]], [["w3"]], [["w4", "w5", "w6"]], [["w7"]]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = ours(documents, vocabulary, random.Random(1), num_duplicates=4)
    assert len(made) == 16
    assert all(instance[4] == 1 for instance in made)
    assert [str(warning.message)[:29] for warning in caught] == ["every document has 1 sentence"]


def test_no_documents_is_an_error():
    with pytest.raises(ValueError, match="Expected documents that hold a token"):
        ours([[[]], []], vocabulary_of(10, 0), random.Random(0))
