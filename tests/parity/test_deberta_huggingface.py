"""Our DeBERTa against those in Hugging Face transformers, with the same random weights."""

import json
import os

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert3 import DebertaBackbone, DebertaV2Backbone, MaskedLM
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

# float32 matrix products in another order; activations of size 1 after each LayerNorm.
TOLERANCE = 2e-5
TINY = {
    "vocab_size": 67,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "legacy": False,
}
V2 = {
    "position_buckets": 8,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "pos_att_type": ["p2c", "c2p"],
}
KINDS = {
    "v1": ("Deberta", {}),
    "v1_short_span": ("Deberta", {"max_relative_positions": 9}),
    "v1_c2p": ("Deberta", {"pos_att_type": ["c2p"]}),
    "v2": ("DebertaV2", {**V2, "conv_kernel_size": 3, "conv_act": "gelu", "conv_groups": 1}),
    "v2_tanh": ("DebertaV2", {**V2, "conv_kernel_size": 3}),
    "v3": ("DebertaV2", V2),
    "v3_segments": ("DebertaV2", {**V2, "type_vocab_size": 2}),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def theirs(kind, folder, task="Model", scale=4.0):
    """A random model of theirs, saved; its weights larger than at the start, so that all count."""
    torch.manual_seed(0)
    prefix, changes = KINDS[kind]
    config = getattr(transformers, f"{prefix}Config")(**{**TINY, **changes})
    model = getattr(transformers, prefix + task)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(scale)
    model.save_pretrained(folder)
    return model


def batch(length=30):
    """Three rows of ids, all but the first with padding."""
    generator = np.random.default_rng(1)
    mask = (np.arange(length) < np.array([[length], [length // 2], [3]])).astype("int32")
    ids = generator.integers(1, 67, mask.shape).astype("int32") * mask
    segments = generator.integers(0, 2, mask.shape).astype("int32") * mask
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def their_layers(model, inputs):
    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(inputs["token_ids"], dtype=torch.long),
            token_type_ids=torch.tensor(inputs["segment_ids"], dtype=torch.long),
            attention_mask=torch.tensor(inputs["padding_mask"], dtype=torch.long),
            output_hidden_states=True,
        )
    return [states.numpy() for states in outputs.hidden_states]


@EVERY_KIND
def test_C10_every_layer_is_equal_on_real_tokens(kind, tmp_path):
    model = theirs(kind, tmp_path / "hf")
    backbone, report = preset.read_backbone(tmp_path / "hf", DebertaBackbone)
    assert not (report.newly_initialised or report.unexpected or report.ignored)
    inputs = batch()
    received = backbone(inputs, layer_outputs=True)["layer_outputs"]
    real = inputs["padding_mask"] == 1
    for ours, wanted in zip(received, their_layers(model, inputs), strict=True):
        ours = keras.ops.convert_to_numpy(ours)
        np.testing.assert_allclose(ours[real], wanted[real], atol=TOLERANCE, rtol=0)
        assert wanted[real].std() > 0.05


@EVERY_KIND
def test_round_trip_is_bit_equal(kind, tmp_path):
    model = theirs(kind, tmp_path / "hf")
    save_huggingface(preset.load_backbone(tmp_path / "hf", DebertaBackbone), tmp_path / "ours")
    first, second = (load_file(tmp_path / n / "model.safetensors") for n in ("hf", "ours"))
    assert sorted(first) == sorted(second)
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)
    again, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    inputs = batch()
    np.testing.assert_array_equal(
        their_layers(again.eval(), inputs)[-1], their_layers(model, inputs)[-1]
    )


def with_positions(folder):
    """Add what microsoft's own files hold and transformers drops: the position table."""
    tensors = {
        name: value.copy() for name, value in load_file(folder / "model.safetensors").items()
    }
    table = np.random.default_rng(0).normal(0, 0.3, (40, 32)).astype("float32")
    tensors["deberta.embeddings.position_embeddings.weight"] = table
    save_file(tensors, folder / "model.safetensors")
    return tensors


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_the_masked_lm_of_microsoft_loads_with_decoder_and_head(kind, tmp_path):
    theirs(kind, tmp_path / "hf", "ForMaskedLM")
    tensors = with_positions(tmp_path / "hf")
    task, report = preset.read_task(tmp_path / "hf", MaskedLM)
    assert not (report.newly_initialised or report.unexpected)
    table = keras.ops.convert_to_numpy(task.enhanced_mask_decoder.embeddings)
    np.testing.assert_array_equal(table, tensors["deberta.embeddings.position_embeddings.weight"])
    bias = keras.ops.convert_to_numpy(task.masked_lm_head.bias)
    np.testing.assert_array_equal(bias, tensors["lm_predictions.lm_head.bias"])
    save_huggingface(task, tmp_path / "ours")
    again = load_file(tmp_path / "ours" / "model.safetensors")
    assert sorted(again) == sorted(tensors)
    for name, value in tensors.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)


def test_without_the_position_table_no_mask_is_filled(tmp_path):
    theirs("v1", tmp_path / "hf", "ForMaskedLM")
    with pytest.raises(ValueError, match="Received: none for 'enhanced_mask_decoder'"):
        MaskedLM.from_preset(tmp_path / "hf")
    task = MaskedLM.from_preset(tmp_path / "hf", new_heads=("enhanced_mask_decoder",))
    with pytest.raises(ValueError, match="random ones for enhanced_mask_decoder$"):
        task.fill_mask("a [MASK]")
    fresh = MaskedLM(task.backbone)
    with pytest.raises(ValueError, match="random ones for enhanced_mask_decoder, masked_lm_head$"):
        fresh.fill_mask("a [MASK]")


def test_C9_the_other_layout_is_refused(tmp_path):
    theirs("v1", tmp_path / "hf")
    file = tmp_path / "hf" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, **V2, "model_type": "deberta-v2"}))
    with pytest.raises(ValueError, match="query_proj.*Received: the other layout.*in_proj"):
        preset.load_backbone(tmp_path / "hf", DebertaV2Backbone)


@pytest.mark.parametrize(
    ("kind", "entries", "message"),
    [
        ("v1", {"position_biased_input": True}, "position_biased_input=False"),
        ("v1", {"pos_att_type": "c2p|p2p"}, "Expected `terms` among"),
        ("v1", {"relative_attention": False}, "relative_attention=True"),
        ("v1", {"pooler_hidden_act": "tanh"}, "pooler_hidden_act='gelu'"),
        ("v3", {"share_att_key": False}, "share_att_key=True"),
        ("v3", {"norm_rel_ebd": "none"}, "norm_rel_ebd='layer_norm'"),
        ("v3", {"hidden_act": "mish"}, "Expected hidden_act among"),
    ],
)
def test_C14_what_we_cannot_compute_is_refused(kind, entries, message, tmp_path):
    theirs(kind, tmp_path / "hf")
    file = tmp_path / "hf" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))
    with pytest.raises(ValueError, match=message):
        preset.load_backbone(tmp_path / "hf", DebertaBackbone)
