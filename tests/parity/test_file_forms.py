"""Every file form of transformers, for every family and every head of BERT.

One random model of theirs is written in each form; ours out of every form hold the same weights bit
for bit, agree with theirs, and leave again so that transformers misses nothing.
"""

import json
import os

import numpy as np
import pytest

from keras_bert3 import (
    Backbone,
    CausalLM,
    ExtractiveQA,
    MaskedLM,
    MultipleChoice,
    TextClassifier,
    TokenClassifier,
)
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.variables import variables_by_path
from tests.layer_checks import to_numpy
from tests.parity.sizes import ENCODER, GPT, TOLERANCE, V1, V2

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

CONVOLUTION = {**V2, "conv_kernel_size": 3, "conv_act": "gelu"}

# Their class, its sizes, our class, and the names of the same outputs, theirs and ours.
MODELS = {
    "bert": ("BertModel", ENCODER, Backbone, {"last_hidden_state": "sequence_output"}),
    "pretraining": (
        "BertForPreTraining",
        ENCODER,
        MaskedLM,
        {"prediction_logits": "masked_lm", "seq_relationship_logits": "next_sentence"},
    ),
    "masked_lm": ("BertForMaskedLM", ENCODER, MaskedLM, {"logits": "masked_lm"}),
    "next_sentence": (
        "BertForNextSentencePrediction",
        ENCODER,
        MaskedLM,
        {"logits": "next_sentence"},
    ),
    "classifier": ("BertForSequenceClassification", ENCODER, TextClassifier, {"logits": None}),
    "choice": ("BertForMultipleChoice", ENCODER, MultipleChoice, {"logits": None}),
    "tokens": ("BertForTokenClassification", ENCODER, TokenClassifier, {"logits": None}),
    "answers": (
        "BertForQuestionAnswering",
        ENCODER,
        ExtractiveQA,
        {"start_logits": "start", "end_logits": "end"},
    ),
    "gpt": ("OpenAIGPTLMHeadModel", GPT, CausalLM, {"logits": None}),
    "deberta": ("DebertaModel", V1, Backbone, {"last_hidden_state": "sequence_output"}),
    "deberta_v2": ("DebertaV2Model", V2, Backbone, {"last_hidden_state": "sequence_output"}),
    "convolution": (
        "DebertaV2Model",
        CONVOLUTION,
        Backbone,
        {"last_hidden_state": "sequence_output"},
    ),
}
OPTIONS = {"next_sentence": {"next_sentence": True, "new_heads": ("masked_lm_head",)}}


def theirs(name):
    """A random model of theirs, its weights larger than at the start, so that all of it counts."""
    torch.manual_seed(0)
    class_name, sizes, _, _ = MODELS[name]
    kind = getattr(transformers, class_name)
    model = kind(kind.config_class(**sizes)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "Norm" in key or "ln_" in key or key.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(4.0)
    return model


def inputs_of(name):
    """Ids, with padding on the right in the second row."""
    ids = np.random.default_rng(1).integers(1, 43, (2, 2, 8) if name == "choice" else (2, 8))
    ids[1, ..., 5:] = 0
    return {"token_ids": ids.astype("int32"), "padding_mask": (ids > 0).astype("int32")}


def write(model, folder):
    """Write the four forms; a pickled file holds tied tensors under all their names."""
    model.save_pretrained(folder / "safetensors")
    model.save_pretrained(folder / "safetensors_shards", max_shard_size="6KB")
    assert len(list((folder / "safetensors_shards").glob("*.safetensors"))) > 1
    state = model.state_dict()
    model.config.save_pretrained(folder / "pickled")
    torch.save(state, folder / "pickled" / "pytorch_model.bin")
    model.config.save_pretrained(folder / "pickled_shards")
    places = {key: f"pytorch_model-0000{i % 2 + 1}-of-00002.bin" for i, key in enumerate(state)}
    for file in set(places.values()):
        part = {key: value for key, value in state.items() if places[key] == file}
        torch.save(part, folder / "pickled_shards" / file)
    index = {"metadata": {}, "weight_map": places}
    (folder / "pickled_shards" / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return sorted(path for path in folder.iterdir())


def read(name, folder):
    own = MODELS[name][2]
    if own is Backbone:
        return preset.read_backbone(folder, own)
    return preset.read_task(folder, own, **OPTIONS.get(name, {}))


def loaded_weights(model, report):
    variables = variables_by_path(getattr(model, "backbone", model), getattr(model, "heads", {}))
    return {path: to_numpy(variables[path].value) for path in report.loaded}


def assert_agrees(name, model, inputs, own):
    ids, mask = (torch.tensor(inputs[key]).long() for key in ("token_ids", "padding_mask"))
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask)
    received = own(inputs)
    for their_name, our_name in MODELS[name][3].items():
        wanted = getattr(expected, their_name).numpy()
        ours = to_numpy(received if our_name is None else received[our_name])
        if wanted.ndim > 1 and wanted.shape[:2] == inputs["token_ids"].shape:
            real = inputs["padding_mask"] == 1
            wanted, ours = wanted[real], ours[real]
        assert wanted.std() > 0.02
        np.testing.assert_allclose(ours, wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_every_form_loads_and_leaves_again(tmp_path, name):
    model = theirs(name)
    forms = write(model, tmp_path / "theirs")
    assert len(forms) == 4
    first, own = None, None
    for form in forms:
        own, report = read(name, form)
        assert not report.unexpected, form
        weights = loaded_weights(own, report)
        first = weights if first is None else first
        assert list(weights) == list(first)
        for path, value in weights.items():
            np.testing.assert_array_equal(value, first[path], err_msg=f"{form} {path}")
    assert_agrees(name, model, inputs_of(name), own)
    save_huggingface(own, tmp_path / "ours")
    again, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    strangers = {"cls.predictions"} if name == "next_sentence" else set()
    left = {key for keys in info.values() for key in keys if not key.startswith(tuple(strangers))}
    assert not left, info
    for key, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], value), key
