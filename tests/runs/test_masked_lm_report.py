from types import SimpleNamespace

import numpy as np

from keras_bert3.runs import bert_pretraining, masked_lm_report, pretraining
from keras_bert3.tokenizers.vocabulary import SPECIAL_TOKENS
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer
from tests.runs.test_pretraining import configure


def test_the_report_compares_with_what_needs_no_model(tmp_path, capsys):
    config = configure(tmp_path)
    tokenizer = bert_pretraining.make_tokenizer(config)
    tokens = pretraining.make_corpus(tmp_path, config, tokenizer)
    phases = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    task = bert_pretraining.make_task(config, tokenizer)
    task.save_to_preset(tmp_path / "preset")
    scores = bert_pretraining.report(tmp_path, config, task, tokens, phases)
    assert scores["uniform_cross_entropy"] == np.log(tokenizer.vocabulary_size)
    # Words of five tables: their frequencies say much, and an untrained model nothing.
    assert scores["unigram_cross_entropy"] < scores["uniform_cross_entropy"] - 0.3
    assert abs(scores["masked_lm_loss"] - scores["uniform_cross_entropy"]) < 0.5
    printed = capsys.readouterr().out
    assert printed.count("[MASK] =") == 3 and printed.count("(was: ") == 3
    card = (tmp_path / "preset" / "README.md").read_text()
    assert f"{scores['masked_lm_loss']:.3f}" in card


def test_examples_do_not_begin_within_a_word():
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "##ate", "word"])
    ids = np.array([tokenizer.token_to_id("##ate")] + [tokenizer.token_to_id("word")] * 13)
    task = SimpleNamespace(
        preprocessor=SimpleNamespace(tokenizer=tokenizer),
        fill_mask=lambda text, top_k: [[("word", 1.0)]],
    )
    rows = np.array([[0, 13, 0, 0, 0], [1, 13, 0, 0, 0]])
    phase = SimpleNamespace(evaluation=SimpleNamespace(examples=rows))
    texts = masked_lm_report.fill_examples(task, SimpleNamespace(tokens=ids), phase)
    assert [text.split()[0] for text, _ in texts] == ["word"]
