import numpy as np
import pytest

from keras_bert3.backbones.backbone import Backbone, check_range
from keras_bert3.backbones.bert import BertBackbone


def make():
    return BertBackbone(
        vocabulary_size=20, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=8
    )


def test_check_range_names_the_first_offender():
    check_range("token_ids", np.array([[0, 19]]), 20)
    with pytest.raises(ValueError, match=r"Received: 20 at position \(1, 0\)"):
        check_range("token_ids", np.array([[0, 1], [20, 21]]), 20)


def test_a_preset_gives_the_same_backbone_back(tmp_path):
    backbone = make()
    backbone.save_to_preset(tmp_path / "preset")
    for cls in (Backbone, BertBackbone):
        twin = cls.from_preset(tmp_path / "preset")
        assert isinstance(twin, BertBackbone)
        for ours, theirs in zip(backbone.get_weights(), twin.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert BertBackbone.from_preset(tmp_path / "preset", dropout=0.0).dropout == 0.0


def test_token_ids_of_another_rank_are_refused():
    with pytest.raises(ValueError, match=r"shape \(batch, length\). Received: shape=\(3,\)"):
        make()({"token_ids": np.ones(3, "int32"), "padding_mask": np.ones((1, 3))})
