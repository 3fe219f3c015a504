import dataclasses

import numpy as np
import pytest

from keras_bert3 import BertBackbone
from keras_bert3.checkpoints.description import Description, check_sizes
from keras_bert3.checkpoints.huggingface import save_huggingface
from tests.checkpoints.models import SIZES, backbone


def test_a_backbone_alone_needs_no_more_than_its_class_and_arguments():
    first, second = (Description("BertBackbone", {"num_layers": 2}) for _ in range(2))
    assert (first.task_class, first.preprocessor_class, first.tokenizer_class) == (None,) * 3
    assert (first.task_config, first.more_heads) == ({}, ())
    assert first == second and first.task_config is not second.task_config


@pytest.mark.parametrize("size", [0, -3, None, "two", 1.5, True, [2]])
def test_sizes_are_whole_numbers(size):
    check_sizes(SIZES, "there")
    check_sizes({"hidden_dim": np.int64(8)}, "there")
    for name in SIZES:
        with pytest.raises(ValueError, match=f"above 0 as {name} .* 'there'. Received: "):
            check_sizes({**SIZES, name: size}, "there")


@pytest.mark.parametrize("amount", [None, "1e-12", -1e-12, float("nan"), True, [1.0]])
def test_amounts_are_numbers(amount):
    check_sizes({"layer_norm_epsilon": 0, "initializer_range": np.float32(0.02)}, "there")
    for name in ("layer_norm_epsilon", "initializer_range"):
        with pytest.raises(ValueError, match=f"not below 0 as {name} .* 'there'. Received: "):
            check_sizes({**SIZES, name: amount}, "there")


def test_a_file_and_an_override_are_checked_alike(tmp_path):
    save_huggingface(backbone(), tmp_path / "a")
    with pytest.raises(ValueError, match="above 0 as max_sequence_length .*/a'. Received: 0"):
        BertBackbone.from_preset(tmp_path / "a", max_sequence_length=0)
    file = tmp_path / "a" / "config.json"
    file.write_text(file.read_text().replace('"hidden_size": 8', '"hidden_size": "8"'))
    with pytest.raises(ValueError, match="above 0 as hidden_dim .*/a'. Received: '8'"):
        BertBackbone.from_preset(tmp_path / "a")


def test_what_a_folder_says_is_not_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Description("BertBackbone", {}).task_class = "MaskedLM"  # pyright: ignore
