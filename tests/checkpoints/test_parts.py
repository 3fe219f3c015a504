from keras_bert3.checkpoints.parts import parts_of
from tests.checkpoints.models import backbone, masked_lm, tokenizer


def test_a_backbone_has_no_heads_and_takes_any_tokenizer():
    model, words = backbone(), tokenizer()
    assert parts_of(model) == (model, {}, None)
    assert parts_of(model, words) == (model, {}, words)


def test_a_task_brings_its_tokenizer_unless_another_goes_along():
    own, other = tokenizer(), tokenizer(lowercase=False)
    task = masked_lm(tokenizer=own)
    network, heads, words = parts_of(task)
    assert network is task.backbone and words is own
    assert heads == {
        "masked_lm_head": task.masked_lm_head,
        "next_sentence_head": task.next_sentence_head,
    }
    assert parts_of(task, other)[2] is other


def test_a_task_without_preprocessor_has_no_tokenizer():
    assert parts_of(masked_lm())[2] is None
