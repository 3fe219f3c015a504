import dataclasses

import pytest

from keras_bert3.checkpoints.description import Description


def test_a_backbone_alone_needs_no_more_than_its_class_and_arguments():
    first, second = (Description("BertBackbone", {"num_layers": 2}) for _ in range(2))
    assert (first.task_class, first.preprocessor_class, first.tokenizer_class) == (None,) * 3
    assert (first.task_config, first.more_heads) == ({}, ())
    assert first == second and first.task_config is not second.task_config


def test_what_a_folder_says_is_not_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Description("BertBackbone", {}).task_class = "MaskedLM"  # pyright: ignore
