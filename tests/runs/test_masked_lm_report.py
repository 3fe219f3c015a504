import numpy as np

from keras_bert3.runs import bert_pretraining, pretraining
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
