"""The example table: purity, counts, and the settings that cannot work."""

import numpy as np
import pytest

from keras_bert3.data.pretraining_examples import build_examples
from keras_bert3.data.tokenized_corpus import TokenizedCorpus
from keras_bert3.objectives.next_sentence import IS_NEXT, IS_RANDOM


def corpus_of(sentences_of_documents, most_tokens=25, seed=1):
    generator = np.random.default_rng(seed)
    documents = np.concatenate([[0], np.cumsum(sentences_of_documents)])
    lengths = generator.integers(1, most_tokens + 1, documents[-1])
    sentences = np.concatenate([[0], np.cumsum(lengths)])
    tokens = generator.integers(5, 100, sentences[-1]).astype(np.uint16)
    return TokenizedCorpus(tokens, sentences, documents, 100, "")


def document_of(corpus, tokens):
    bounds = corpus.sentence_offsets[corpus.document_offsets]
    return np.searchsorted(bounds, tokens, "right") - 1


@pytest.fixture
def corpus():
    return corpus_of(np.random.default_rng(2).integers(1, 30, 60))


@pytest.mark.parametrize("next_sentence", [True, False])
def test_table_on_disk_fits_the_sequence_and_the_documents(tmp_path, corpus, next_sentence):
    documents = np.arange(5, 50)
    path = tmp_path / "examples.npy"
    table = build_examples(corpus, documents, path, 64, 3, next_sentence=next_sentence)
    assert (np.load(path) == table).all() and table.dtype == np.int64 and table.shape[1] == 5
    special = 3 if next_sentence else 2
    assert (table[:, 1] + table[:, 3]).max() == 64 - special
    first = document_of(corpus, table[:, 0])
    assert (first == document_of(corpus, table[:, 0] + table[:, 1] - 1)).all()
    assert set(first) == set(documents)
    if next_sentence:
        second = document_of(corpus, table[:, 2])
        assert (second == document_of(corpus, table[:, 2] + table[:, 3] - 1)).all()
        assert ((first == second) == (table[:, 4] == IS_NEXT)).all()
        assert set(second) <= set(documents)
        assert set(table[:, 4]) == {IS_NEXT, IS_RANDOM}
    else:
        assert not table[:, 2:].any()


def test_single_runs_show_every_token_once_a_walk(tmp_path, corpus):
    table = build_examples(corpus, range(60), tmp_path / "a.npy", 64, 4, next_sentence=False)
    seen = np.zeros(len(corpus.tokens), int)
    for begin, length, *_ in table:
        seen[begin : begin + length] += 1
    assert (seen == 4).all()


def test_examples_of_a_document_depend_on_seed_walk_and_document_alone(tmp_path, corpus):
    def rows(name, documents, document, walks, seed=0):
        table = build_examples(
            corpus, documents, tmp_path / name, 64, walks, 0.6, seed=seed, next_sentence=False
        )
        return table[document_of(corpus, table[:, 0]) == document].tolist()

    alone = rows("a", [17], 17, 2)
    assert rows("b", range(60), 17, 2) == alone
    assert rows("c", range(60)[::-1], 17, 3)[: len(alone)] == alone
    assert len({str(rows(f"s{seed}", [17], 17, 9, seed)) for seed in range(3)}) == 3


def test_same_seed_same_pairs_other_seed_others(tmp_path, corpus):
    made = [
        build_examples(corpus, range(60), tmp_path / str(i), 64, 2, seed=seed)
        for i, seed in enumerate((1, 1, 2))
    ]
    assert (made[0] == made[1]).all()
    assert made[0].tolist() != made[2].tolist()


def test_each_walk_cuts_anew(tmp_path, corpus):
    table = build_examples(corpus, range(60), tmp_path / "a", 64, 2)
    one = build_examples(corpus, range(60), tmp_path / "b", 64, 1)
    assert (table[: len(one)] == one).all()
    assert table[len(one) :].tolist() != one.tolist()


def test_N2_documents_of_one_sentence_cannot_have_next_sentences(tmp_path):
    corpus = corpus_of([1, 1, 1, 1])
    with pytest.raises(ValueError, match="every label would be random; is there a blank line"):
        build_examples(corpus, range(4), tmp_path / "a.npy", 64)
    assert list(tmp_path.iterdir()) == []
    assert len(build_examples(corpus, range(4), tmp_path / "a.npy", 64, next_sentence=False))
    mixed = corpus_of([1, 1, 2, 1])
    assert len(build_examples(mixed, range(4), tmp_path / "b.npy", 64))


def test_N3_one_long_document(tmp_path):
    corpus = corpus_of([50])
    table = build_examples(corpus, [0], tmp_path / "a.npy", 64, 1, next_sentence=False)
    assert len(table) > 5
    with pytest.raises(ValueError, match="at least 2 documents .* or use next_sentence=False"):
        build_examples(corpus, [0], tmp_path / "b.npy", 64)


def test_N5_the_number_of_examples_is_about_walks_times_chunks(tmp_path):
    corpus = corpus_of([400] * 20)
    chunks = len(corpus.tokens) / 125
    for next_sentence, low, high in ((False, 0.95, 1.3), (True, 1.0, 1.6)):
        counts = [
            len(build_examples(corpus, range(20), tmp_path / f"{walks}{next_sentence}", 128, walks,
                               short_probability=0.0, next_sentence=next_sentence))
            for walks in (1, 10)
        ]  # fmt: skip
        assert counts[1] == pytest.approx(10 * counts[0], rel=0.03)
        assert low * 10 * chunks < counts[1] < high * 10 * chunks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"documents": []}, "Expected a list of document numbers"),
        ({"documents": [0, 60]}, "from 0 to 59. Received: 0 to 60"),
        ({"documents": [3, 3]}, "Received: one of them twice"),
        ({"sequence_length": 4}, "sequence_length >= 5"),
        ({"sequence_length": 3, "next_sentence": False}, "sequence_length >= 4"),
        ({"num_duplicates": 0}, "num_duplicates >= 1"),
        ({"short_probability": 1.5}, "short_probability <= 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path, corpus, settings, message):
    settings = {"documents": range(60), "sequence_length": 64, **settings}
    with pytest.raises(ValueError, match=message):
        build_examples(corpus, path=tmp_path / "a.npy", **settings)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused(tmp_path, corpus):
    (tmp_path / "a.npy").write_text("old")
    with pytest.raises(ValueError, match="which exists"):
        build_examples(corpus, range(60), tmp_path / "a.npy", 64)
