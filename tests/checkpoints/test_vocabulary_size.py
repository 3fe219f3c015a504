import numpy as np
import pytest

from keras_bert3.checkpoints import resize_vocabulary
from tests.checkpoints.models import backbone, masked_lm, tokenizer, weights


def test_C7_embedding_and_bias_grow_together():
    task = masked_lm(tokenizer=tokenizer())
    larger, report = resize_vocabulary(task, 24 + 3)
    table = np.asarray(larger.backbone.token_embeddings.numpy())
    bias = np.asarray(larger.masked_lm_head.bias.numpy())
    assert table.shape == (27, 8) and bias.shape == (27,)
    np.testing.assert_array_equal(table[:24], task.backbone.token_embeddings.numpy())
    np.testing.assert_array_equal(bias[:24], task.masked_lm_head.bias.numpy())
    np.testing.assert_array_equal(bias[24:], 0)
    assert 0.001 < table[24:].std() < 0.05, "new rows start as in a new model"
    assert larger.backbone.vocabulary_size == 27 and larger.masked_lm_head.vocabulary_size == 27
    assert larger.preprocessor is task.preprocessor
    assert report.reshaped == (
        "embeddings/token/embeddings: (24, 8) -> (27, 8)",
        "masked_lm_head/bias: (24,) -> (27,)",
    )


def test_everything_else_is_copied():
    task = masked_lm()
    larger, _ = resize_vocabulary(task, 27)
    for old, new in zip(weights(task), weights(larger), strict=True):
        if old.shape == new.shape:
            np.testing.assert_array_equal(old, new)


def test_a_backbone_alone_and_multiples():
    larger, _ = resize_vocabulary(backbone(), 25, multiple_of=8)
    assert larger.vocabulary_size == 32 == larger.token_embeddings.shape[0]
    same, report = resize_vocabulary(backbone(), 24, multiple_of=8)
    assert same.vocabulary_size == 24 and not report.reshaped


def test_a_vocabulary_does_not_shrink():
    with pytest.raises(ValueError, match="at least 24.*Received: vocabulary_size=20"):
        resize_vocabulary(backbone(), 20)
    with pytest.raises(ValueError, match="at least 1. Received: multiple_of=0"):
        resize_vocabulary(backbone(), 24, multiple_of=0)
