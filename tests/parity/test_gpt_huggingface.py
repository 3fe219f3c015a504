"""Our GPT-1 against the one in Hugging Face transformers, with the same random weights."""

import os

import keras
import numpy as np
import pytest

from keras_bert3 import CausalLM, GPTBackbone
from keras_bert3.checkpoints import huggingface, preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.openai_gpt import save_openai_gpt
from keras_bert3.checkpoints.variables import variables_by_path
from tests.layer_checks import to_numpy

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

# float32 matrix products in another order; activations of size 1 after each LayerNorm.
TOLERANCE = 2e-5
SIZES = {"vocab_size": 67, "n_embd": 128, "n_layer": 2, "n_head": 2, "n_positions": 40}


def theirs(class_name, scale=2.0, **config):
    """A random model of theirs, its weights larger than at the start, so that all of it counts."""
    torch.manual_seed(0)
    config = transformers.OpenAIGPTConfig(**{**SIZES, **config})
    model = getattr(transformers, class_name)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "ln_" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(scale)
    return model


def batch(length=24):
    """Three rows of ids, all but the first padded on the right, where positions are theirs too."""
    generator = np.random.default_rng(1)
    lengths = np.array([length, length // 2, 3])
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    ids = generator.integers(1, SIZES["vocab_size"], (3, length)).astype("int32") * mask
    return {"token_ids": ids, "padding_mask": mask}


def tensors(inputs):
    return {
        "input_ids": torch.tensor(inputs["token_ids"], dtype=torch.long),
        "attention_mask": torch.tensor(inputs["padding_mask"], dtype=torch.long),
    }


def assert_equal_on_real_tokens(ours, wanted, inputs):
    real = inputs["padding_mask"] == 1
    assert wanted[real].std() > 0.05
    np.testing.assert_allclose(ours[real], wanted[real], atol=TOLERANCE, rtol=0)


def test_language_model(tmp_path):
    model = theirs("OpenAIGPTLMHeadModel")
    model.save_pretrained(tmp_path)
    task, report = preset.read_task(tmp_path, CausalLM)
    assert not report.newly_initialised and not report.unexpected
    assert (task.backbone.activation, task.backbone.embedding_dropout) == ("gelu_tanh", "sum")
    inputs = batch()
    with torch.no_grad():
        expected = model(**tensors(inputs), output_hidden_states=True)
    assert_equal_on_real_tokens(to_numpy(task(inputs)), expected.logits.numpy(), inputs)
    layers = task.backbone(inputs, layer_outputs=True)["layer_outputs"]
    for ours, wanted in zip(layers, expected.hidden_states, strict=True):
        np.testing.assert_allclose(to_numpy(ours)[0], wanted.numpy()[0], atol=TOLERANCE, rtol=0)


def test_GP1_GP3_double_heads(tmp_path):
    model = theirs("OpenAIGPTDoubleHeadsModel")
    model.save_pretrained(tmp_path)
    task = CausalLM.from_preset(tmp_path, preprocessor=None)
    head = keras.layers.Dense(1, name="multiple_choice_head")
    head.build((None, SIZES["n_embd"]))
    report = huggingface.load_weights(tmp_path, task.backbone, {"multiple_choice_head": head})
    assert not report.newly_initialised and not report.unexpected
    inputs = batch()
    last = inputs["padding_mask"].sum(1) - 1
    choices = tensors(inputs)["input_ids"][None]  # padding on the right is invisible to the rest
    with torch.no_grad():
        expected = model(input_ids=choices, mc_token_ids=torch.tensor(last[None]))
    hidden = to_numpy(task.backbone(inputs)["sequence_output"])
    scores = to_numpy(head(hidden[np.arange(3), last]))
    assert scores.shape == (3, 1)
    np.testing.assert_allclose(scores[:, 0], expected.mc_logits.numpy()[0], atol=TOLERANCE, rtol=0)
    assert_equal_on_real_tokens(to_numpy(task(inputs)), expected.logits.numpy()[0], inputs)


def test_classification(tmp_path):
    model = theirs("OpenAIGPTForSequenceClassification", num_labels=3, pad_token_id=0)
    model.save_pretrained(tmp_path)
    backbone = GPTBackbone.from_preset(tmp_path)
    head = keras.layers.Dense(3, name="classifier")
    head.build((None, SIZES["n_embd"]))
    report = huggingface.load_weights(tmp_path, backbone, {"classifier": head})
    assert not report.newly_initialised and not report.unexpected
    inputs = batch()
    with torch.no_grad():
        expected = model(**tensors(inputs)).logits.numpy()
    last = inputs["padding_mask"].sum(1) - 1
    hidden = to_numpy(backbone(inputs)["sequence_output"])[np.arange(3), last]
    np.testing.assert_allclose(to_numpy(head(hidden)), expected, atol=TOLERANCE, rtol=0)
    with pytest.raises(ValueError, match="`classifier/bias` to be zero"):
        head.bias.assign([1.0, 0.0, 0.0])
        list(
            huggingface._tensors_of(
                huggingface.huggingface_gpt, backbone, {"classifier": head}, "float32"
            )
        )


def test_what_we_save_transformers_loads_whole(tmp_path):
    model = theirs("OpenAIGPTLMHeadModel")
    model.save_pretrained(tmp_path / "hf")
    task = CausalLM.from_preset(tmp_path / "hf")
    save_huggingface(task, tmp_path / "ours")
    for name in ("OpenAIGPTLMHeadModel", "OpenAIGPTModel"):
        again, info = getattr(transformers, name).from_pretrained(
            tmp_path / "ours", output_loading_info=True
        )
        assert not any(info.values()), info
        state = again.state_dict()
        for key, value in model.state_dict().items():
            key = key if name == "OpenAIGPTLMHeadModel" else key.removeprefix("transformer.")
            assert key == "lm_head.weight" or torch.equal(state[key], value), key


def test_old_files_without_a_prefix_and_with_masks_load_too(tmp_path):
    model = theirs("OpenAIGPTLMHeadModel")
    model.config.save_pretrained(tmp_path)
    state = {
        name.removeprefix("transformer."): value
        for name, value in model.state_dict().items()
        if name != "lm_head.weight"
    }
    state["h.0.attn.bias"] = torch.tril(torch.ones(1, 1, 40, 40))
    torch.save(state, tmp_path / "pytorch_model.bin")
    backbone, report = preset.read_backbone(tmp_path, GPTBackbone)
    assert report.ignored == ("h.0.attn.bias",) and not report.unexpected
    expected = model.state_dict()["transformer.h.1.attn.c_attn.weight"].numpy()
    parts = [
        to_numpy(getattr(backbone.blocks[1].attention, name).kernel.value)
        for name in ("query", "key", "value")
    ]
    np.testing.assert_array_equal(np.concatenate(parts, -1), expected)


@pytest.mark.parametrize("save", [save_huggingface, save_openai_gpt])
def test_round_trips_are_equal_bit_for_bit(tmp_path, save):
    generator = np.random.default_rng(0)
    backbone = GPTBackbone(67, 2, 2, 128, 512, max_sequence_length=40)
    for variable in variables_by_path(backbone).values():
        variable.assign(generator.normal(size=variable.shape))
    save(CausalLM(backbone), tmp_path / "saved")
    task, report = preset.read_task(tmp_path / "saved", CausalLM)
    again = variables_by_path(task.backbone)
    assert len(report.loaded) == len(again) == 2 + 2 * 16
    for path, variable in variables_by_path(backbone).items():
        np.testing.assert_array_equal(to_numpy(variable.value), to_numpy(again[path].value))
