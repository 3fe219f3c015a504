"""Phases and models are in `test_pretraining`, whole runs in `tests.recipes.test_pretrain`."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.runs import bert_pretraining


def test_what_an_earlier_process_has_cut_is_not_cut_again(tmp_path, monkeypatch):
    monkeypatch.setattr(bert_pretraining, "build_examples", lambda *given, **cut: (given, cut))
    path = tmp_path / "examples.npy"
    given, cut = bert_pretraining.examples(path, "corpus", [1], 16, 2, seed=3)
    assert given == ("corpus", [1], path, 16, 2) and cut == {"seed": 3}
    np.save(path, np.arange(3))
    np.testing.assert_array_equal(bert_pretraining.examples(path, None, [], 16, 2), [0, 1, 2])


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_vocabulary_is_read_where_one_is_given(tmp_path, lowercase):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A"]))
    config = SimpleNamespace(vocabulary=str(path), lowercase=lowercase)
    tokenizer = bert_pretraining.make_tokenizer(config)
    assert tokenizer.vocabulary_size == 7
    assert list(tokenizer.tokenize("A")) == ["a" if lowercase else "A"]
