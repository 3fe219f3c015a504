import re
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3.backbones.left_to_right_bert import LeftToRightBertBackbone
from keras_bert3.runs import bert_pretraining, pretraining
from tests.runs import corpus

CONFIG = {
    "data": (),
    "data_format": "sentences",
    "vocabulary": None,
    "vocabulary_size": 80,
    "lowercase": True,
    "size": "micro",
    "dropout": 0.0,
    "backbone": "bert",
    "objective": None,
    "masking": "tokens",
    "without": (),
    "num_duplicates": 2,
    "sequence_length": 32,
    "long_sequence_length": 64,
    "long_fraction": 0.1,
    "batch_size": 8,
    "long_batch_size": None,
    "steps": 20,
    "learning_rate": 1e-3,
    "warmup_steps": 2,
    "weight_decay": 0.01,
    "held_out": 0.05,
    "seed": 1,
}


def configure(tmp_path, **changes):
    data = (str(corpus.write(tmp_path / "corpus.txt")),)
    return SimpleNamespace(**{**CONFIG, "data": data, **changes})


@pytest.fixture
def prepared(tmp_path):
    config = configure(tmp_path)
    tokenizer = bert_pretraining.make_tokenizer(config)
    return config, tokenizer, pretraining.make_corpus(tmp_path, config, tokenizer)


def test_a_tenth_of_the_steps_is_long_with_as_many_tokens_a_step(tmp_path, prepared):
    config, tokenizer, tokens = prepared
    short, long = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    assert (short.sequence_length, short.steps, short.training.batch_size) == (32, 18, 8)
    assert (long.sequence_length, long.steps, long.training.batch_size) == (64, 2, 4)


def test_training_and_held_out_examples_share_no_document(tmp_path, prepared):
    config, tokenizer, tokens = prepared
    (phase, _) = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    seen, held = (set(), set())
    for rows, found in ((phase.training.examples, seen), (phase.evaluation.examples, held)):
        for begin_a, length_a, begin_b, length_b, _ in rows:
            found |= set(range(begin_a, begin_a + length_a))
            found |= set(range(begin_b, begin_b + length_b))
    assert held and seen and not held & seen


def test_the_model_has_positions_for_the_longest_phase(prepared):
    config, tokenizer, _ = prepared
    task = bert_pretraining.make_task(config, tokenizer)
    assert task.backbone.max_sequence_length == 64
    assert task.backbone.vocabulary_size == tokenizer.vocabulary_size
    assert float(task.optimizer.learning_rate) == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("long_fraction", 1.5),
        ("warmup_steps", 21),
        ("held_out", 0),
        ("long_batch_size", 0),
        ("num_duplicates", 0),
        ("sequence_length", 4),
        ("long_sequence_length", 4),
        ("dropout", 1.0),
        ("learning_rate", float("nan")),
        ("weight_decay", -0.1),
        ("dtype_policy", "float8"),
        ("mask_mix", (0.8, 0.1, 0.2)),
    ],
)
def test_settings_that_could_only_fail_later_are_refused_at_once(name, value):
    good = SimpleNamespace(**{**CONFIG, "log_every": 1, "dtype_policy": "float32"})
    pretraining.check(good)
    with pytest.raises(ValueError, match=rf"Received: .*{re.escape(str(value))}"):
        pretraining.check(SimpleNamespace(**{**vars(good), name: value}))
    with pytest.raises(ValueError, match="--remat with Transformer blocks. Received: .* lstm"):
        pretraining.check(SimpleNamespace(**{**vars(good), "backbone": "lstm", "remat": True}))


@pytest.mark.parametrize("fewest", [1, 2])
def test_too_few_documents_are_refused(fewest):
    few = SimpleNamespace(num_documents=2 * fewest - 1)
    with pytest.raises(ValueError, match=f"at least {2 * fewest} documents.*: {2 * fewest - 1}"):
        pretraining.split_documents(few, SimpleNamespace(**CONFIG), fewest)


def test_R8_both_phases_share_one_warm_up_one_decay_and_one_count_of_steps(tmp_path, prepared):
    config, tokenizer, tokens = prepared
    config.log_every = 7
    phases = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    task = bert_pretraining.make_task(config, tokenizer)
    pretraining.train(tmp_path, config, task, phases)
    rows = (tmp_path / "metrics.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["7", "14", "18", "20"]
    assert int(task.optimizer.iterations) == 20
    rates = [float(row.split(",")[rows[0].split(",").index("learning_rate")]) for row in rows[1:]]
    np.testing.assert_allclose(rates, [1e-3 * (1 - s / 20) for s in (6, 13, 17, 19)], rtol=1e-5)


def test_a_mask_mix_that_changes_nothing_is_refused():
    shares = (1.0, 0.0, 0.0)
    config = SimpleNamespace(**{**CONFIG, "mask_mix": shares})
    pretraining.check_mask_mix(config)
    for name, value in (("objective", "ltr"), ("backbone", "gpt")):
        with pytest.raises(ValueError, match="but for BERT's masked LM"):
            pretraining.check_mask_mix(SimpleNamespace(**{**vars(config), name: value}))


def test_the_mask_mix_is_what_hidden_tokens_become(tmp_path, prepared):
    config, tokenizer, tokens = prepared
    config.mask_mix = (1.0, 0.0, 0.0)
    (phase, _) = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    for part in (phase.training, phase.evaluation):
        x, _, weights = part[0]
        hidden = np.take_along_axis(x["token_ids"], x["mask_positions"], 1)
        assert (hidden[weights["masked_lm"] > 0] == tokenizer.mask_id).all()


def test_a_size_may_be_layers_by_width():
    micro, published = bert_pretraining.MICRO, {"base": {"num_layers": 12}}
    found = pretraining.size_of(SimpleNamespace(size="4x256"), micro, published)
    wide = {"num_layers": 4, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}
    assert found == {**micro, **wide}
    for size in ("4x100", "0x64", "x64", "4x256x2"):  # heads are 64 wide
        with pytest.raises(ValueError, match=f"one of micro, base, .*'{size}'"):
            pretraining.size_of(SimpleNamespace(size=size), micro, published)


def test_left_to_right_every_token_is_predicted_from_those_before_it(tmp_path, prepared):
    config, tokenizer, tokens = prepared
    config.objective = "ltr"
    task = bert_pretraining.make_task(config, tokenizer)
    assert isinstance(task.backbone, LeftToRightBertBackbone) and not task.next_sentence
    (phase, _) = bert_pretraining.make_phases(tmp_path, config, tokens, tokenizer)
    before = phase.evaluation[0][0]
    after = {**before, "token_ids": before["token_ids"].copy()}
    after["token_ids"][:, 9] = tokenizer.mask_id
    logits = [np.asarray(task.predict_on_batch(x)["masked_lm"]) for x in (before, after)]
    changed = np.abs(logits[0] - logits[1]).max((0, 2)) > 1e-6
    assert not changed[:9].any() and changed[9:].any()
