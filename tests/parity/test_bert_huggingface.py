"""Our BERT against the one in Hugging Face transformers, with the same random weights."""

import os

import keras
import numpy as np
import pytest

from keras_bert3 import BertBackbone, MaskedLM
from keras_bert3.checkpoints.huggingface import save_huggingface

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

# float32 matrix products in another order; activations of size 1 after each LayerNorm.
TOLERANCE = 2e-5
TINY = {
    "vocab_size": 67,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}


def theirs(activation="gelu", scale=4.0, **sizes):
    """A random model of theirs; its weights larger than at the start, so that all of it counts."""
    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_act=activation, **sizes)
    model = transformers.BertForPreTraining(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(scale)
    return model


def batch(vocabulary_size, length=24):
    """Three rows of ids, all but the first with padding."""
    generator = np.random.default_rng(1)
    lengths = np.array([length, length // 2, 3])
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    ids = generator.integers(1, vocabulary_size, (3, length)).astype("int32") * mask
    segments = generator.integers(0, 2, (3, length)).astype("int32") * mask
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def their_outputs(model, inputs):
    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(inputs["token_ids"], dtype=torch.long),
            token_type_ids=torch.tensor(inputs["segment_ids"], dtype=torch.long),
            attention_mask=torch.tensor(inputs["padding_mask"], dtype=torch.long),
            output_hidden_states=True,
        )
        pooled = model.bert.pooler(outputs.hidden_states[-1])
    return {
        "sequence_output": outputs.hidden_states[-1].numpy(),
        "pooled_output": pooled.numpy(),
        "masked_lm": outputs.prediction_logits.numpy(),
        "next_sentence": outputs.seq_relationship_logits.numpy(),
    }


def our_outputs(task, inputs):
    outputs = {**task.backbone(inputs), **task(inputs)}
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}


def assert_equal_on_real_tokens(received, expected, inputs, tolerance=TOLERANCE):
    real = inputs["padding_mask"] == 1
    for name, values in expected.items():
        ours, wanted = received[name], values
        if values.ndim == 3:
            ours, wanted = ours[real], wanted[real]
        np.testing.assert_allclose(ours, wanted, atol=tolerance, rtol=0, err_msg=name)


@pytest.mark.parametrize(
    ("theirs_name", "ours_name"), [("gelu", "gelu_erf"), ("gelu_new", "gelu_tanh")]
)
def test_C4_outputs_and_both_heads_are_equal(tmp_path, theirs_name, ours_name):
    model = theirs(theirs_name, **TINY)
    model.save_pretrained(tmp_path / "hf")
    task = MaskedLM.from_preset(tmp_path / "hf")
    assert task.backbone.activation == ours_name
    inputs = batch(TINY["vocab_size"])
    expected = their_outputs(model, inputs)
    assert_equal_on_real_tokens(our_outputs(task, inputs), expected, inputs)
    assert min(np.abs(values).std() for values in expected.values()) > 0.05


def test_the_two_gelus_would_be_told_apart(tmp_path):
    model = theirs("gelu", **TINY)
    model.save_pretrained(tmp_path / "hf")
    task = MaskedLM.from_preset(tmp_path / "hf", activation="gelu_tanh")
    inputs = batch(TINY["vocab_size"])
    with pytest.raises(AssertionError, match="Mismatched elements"):
        assert_equal_on_real_tokens(our_outputs(task, inputs), their_outputs(model, inputs), inputs)


def test_what_we_save_transformers_loads_whole(tmp_path):
    model = theirs("gelu", **TINY)
    model.save_pretrained(tmp_path / "hf")
    task = MaskedLM.from_preset(tmp_path / "hf")
    save_huggingface(task, tmp_path / "ours")
    again, info = transformers.BertForPreTraining.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(info.values()), info
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    inputs = batch(TINY["vocab_size"])
    assert_equal_on_real_tokens(
        our_outputs(task, inputs), their_outputs(again.eval(), inputs), inputs
    )


@pytest.mark.parametrize(
    ("class_name", "make"),
    [
        ("BertModel", lambda task: task.backbone),
        ("BertForMaskedLM", lambda task: MaskedLM(task.backbone, next_sentence=False)),
    ],
)
def test_smaller_models_load_whole_too(tmp_path, class_name, make):
    theirs("gelu", **TINY).save_pretrained(tmp_path / "hf")
    save_huggingface(make(MaskedLM.from_preset(tmp_path / "hf")), tmp_path / "ours")
    _, info = getattr(transformers, class_name).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(info.values()), info


def test_base_size_is_equal(tmp_path):
    model = theirs("gelu", scale=2.0, vocab_size=1000)
    model.save_pretrained(tmp_path / "hf")
    task = MaskedLM.from_preset(tmp_path / "hf")
    assert isinstance(task.backbone, BertBackbone) and task.backbone.num_layers == 12
    inputs = batch(1000)
    assert_equal_on_real_tokens(our_outputs(task, inputs), their_outputs(model, inputs), inputs)
