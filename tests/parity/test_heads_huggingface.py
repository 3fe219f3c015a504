"""Our fine-tuned models against those of Hugging Face transformers, with the same random weights.

`theirs(class)` -> file -> ours -> file -> theirs again, and ours again.
"""

import json
import os

import numpy as np
import pytest

from keras_bert3 import MultipleChoice, Task, TextClassifier
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.variables import variables_by_path
from tests.layer_checks import to_numpy
from tests.parity.sizes import ENCODER, GPT, TOLERANCE, V1, V2

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

NAMES = ["contradiction", "entailment", "neutral"]
SIZES = {"Bert": ENCODER, "Deberta": V1, "DebertaV2": V2, "OpenAIGPT": GPT}
CLASSIFIERS = ["Bert", "Deberta", "DebertaV2", "OpenAIGPT"]


def theirs(family, task, **config):
    """A random model of theirs, its weights larger than at the start, so that all of it counts."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES[family], **config})
    model = getattr(transformers, family + task)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or "ln_" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(4.0)
    return model


def rows(*shape):
    """Ids with padding on the right in the second row."""
    ids = np.random.default_rng(1).integers(1, 43, shape).astype("int32")
    ids.reshape(-1, shape[-1])[1, 5:] = 0
    return {"token_ids": ids, "padding_mask": (ids > 0).astype("int32")}


def their_scores(model, inputs):
    ids, mask = (torch.tensor(inputs[name]).long() for name in ("token_ids", "padding_mask"))
    with torch.no_grad():
        if "DoubleHeads" in type(model).__name__:
            return model(input_ids=ids, mc_token_ids=mask.sum(-1) - 1).mc_logits.numpy()
        return model(input_ids=ids, attention_mask=mask).logits.numpy()


def check_both_ways(model, inputs, tmp_path, own):
    """Load, compare, save, let them load, compare, load again, compare bit by bit."""
    model.save_pretrained(tmp_path / "theirs")
    task, report = preset.read_task(tmp_path / "theirs", own)
    assert type(task) is own and not report.newly_initialised and not report.unexpected
    expected = their_scores(model, inputs)
    assert expected.std() > 0.02
    np.testing.assert_allclose(to_numpy(task(inputs)), expected, atol=TOLERANCE, rtol=0)
    save_huggingface(task, tmp_path / "ours")
    again, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    np.testing.assert_allclose(their_scores(again.eval(), inputs), expected, atol=1e-6, rtol=0)
    twin = own.from_preset(tmp_path / "ours")
    saved, loaded = (variables_by_path(t.backbone, t.heads) for t in (task, twin))
    for path, variable in saved.items():
        np.testing.assert_array_equal(to_numpy(loaded[path].value), to_numpy(variable.value))
    return task, again


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_C4_classification_both_ways(tmp_path, family):
    names = {"id2label": dict(enumerate(NAMES)), "label2id": {n: i for i, n in enumerate(NAMES)}}
    extra = {"pad_token_id": 0} if family == "OpenAIGPT" else {}
    model = theirs(family, "ForSequenceClassification", **names, **extra)
    task, again = check_both_ways(model, rows(2, 8), tmp_path, TextClassifier)
    assert task.labels == NAMES, "G1"
    assert again.config.id2label == dict(enumerate(NAMES))


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("Bert", "ForMultipleChoice"),
        ("DebertaV2", "ForMultipleChoice"),
        ("OpenAIGPT", "DoubleHeadsModel"),
    ],
)
def test_GP3_multiple_choice_both_ways(tmp_path, family, task):
    config = {"num_labels": 1} if family == "OpenAIGPT" else {}
    model = theirs(family, task, **config)
    check_both_ways(model, rows(2, 3, 8), tmp_path, MultipleChoice)


def test_a_classifier_out_of_every_form_of_file(tmp_path):
    model = theirs("Bert", "ForSequenceClassification", num_labels=1, classifier_dropout=0.3)
    inputs = rows(2, 8)
    expected = their_scores(model, inputs)
    for form, options in (("one", {}), ("shards", {"max_shard_size": "6KB"}), ("pickled", {})):
        model.save_pretrained(tmp_path / form, **options)
        if form == "pickled":
            (tmp_path / form / "model.safetensors").unlink()
            torch.save(model.state_dict(), tmp_path / form / "pytorch_model.bin")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 2
    for form in ("one", "shards", "pickled"):
        task = Task.from_preset(tmp_path / form)
        assert (task.is_regression, task.labels, task.dropout) == (True, None, 0.3)
        np.testing.assert_allclose(to_numpy(task(inputs)), expected, atol=TOLERANCE, rtol=0)
    save_huggingface(task, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert (config["classifier_dropout"], config["problem_type"]) == (0.3, "regression")


def test_what_transformers_has_no_class_for_is_refused(tmp_path):
    model = theirs("Deberta", "Model")
    model.save_pretrained(tmp_path / "hf")
    task = MultipleChoice.from_preset(tmp_path / "hf")
    with pytest.raises(ValueError, match="Received: .*multiple_choice_head"):
        save_huggingface(task, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_a_head_that_reads_otherwise_is_refused(tmp_path):
    config = transformers.OpenAIGPTConfig(
        **GPT, summary_activation="tanh", architectures=["OpenAIGPTDoubleHeadsModel"]
    )
    config.save_pretrained(tmp_path / "hf")
    with pytest.raises(ValueError, match="Expected summary_activation=None.*'tanh'"):
        Task.from_preset(tmp_path / "hf")


def test_a_classifier_with_a_bias_that_transformers_has_no_place_for_is_refused(tmp_path):
    theirs("OpenAIGPT", "LMHeadModel").save_pretrained(tmp_path / "hf")
    task = TextClassifier.from_preset(tmp_path / "hf", num_classes=2, preprocessor=None)
    task.classifier.bias.assign([1.0, 0.0])
    with pytest.raises(ValueError, match="`classifier/bias` to be zero"):
        save_huggingface(task, tmp_path / "ours")
