"""Labels on words and answers in texts: our models against Hugging Face's, with equal weights.

Their random model -> file -> ours -> file -> theirs again, and ours again.
"""

import os

import numpy as np
import pytest

from keras_bert3 import ExtractiveQA, Task, TokenClassifier
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.checkpoints.variables import variables_by_path
from tests.layer_checks import to_numpy
from tests.parity.sizes import ENCODER, TOLERANCE, V1, V2

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

NAMES = ["O", "B-PER", "I-PER"]
NAMED = {"id2label": dict(enumerate(NAMES)), "label2id": {n: i for i, n in enumerate(NAMES)}}
SIZES = {"Bert": ENCODER, "Deberta": V1, "DebertaV2": V2}
IDS = np.random.default_rng(1).integers(1, 43, (2, 12)).astype("int32")
IDS[1, 5:] = 0
INPUTS = {"token_ids": IDS, "padding_mask": (IDS > 0).astype("int32")}


def theirs(family, task, **config):
    """A random model of theirs, its weights larger than at the start, so that all of it counts."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES[family], **config})
    model = getattr(transformers, f"{family}For{task}")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape) * 0.1)
            else:
                parameter.mul_(4.0)
    return model


def their_logits(model):
    ids, mask = (torch.tensor(INPUTS[name]).long() for name in ("token_ids", "padding_mask"))
    with torch.no_grad():
        outputs = model(input_ids=ids, attention_mask=mask)
    if hasattr(outputs, "logits"):
        return outputs.logits.numpy()
    return np.stack([outputs.start_logits.numpy(), outputs.end_logits.numpy()], -1)


def our_logits(task):
    outputs = task(INPUTS)
    if isinstance(outputs, dict):
        return np.stack([to_numpy(outputs["start"]), to_numpy(outputs["end"])], -1)
    return to_numpy(outputs)


def largest_difference(task, model):
    ours, wanted = our_logits(task), their_logits(model)
    assert ours.shape == wanted.shape and wanted.std() > 0.1
    return np.abs(ours - wanted)[IDS > 0].max()


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize(
    ("name", "own"),
    [("TokenClassification", TokenClassifier), ("QuestionAnswering", ExtractiveQA)],
)
def test_heads_load_and_leave_whole(tmp_path, family, name, own):
    model = theirs(family, name, **(NAMED if own is TokenClassifier else {}))
    model.save_pretrained(tmp_path / "theirs")
    task, report = preset.read_task(tmp_path / "theirs", Task)
    assert type(task) is own and not report.unexpected
    assert all(path.startswith("pooler/") for path in report.newly_initialised)
    assert largest_difference(task, model) <= TOLERANCE

    save_huggingface(task, tmp_path / "ours")
    again, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    for key, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], value), key
    twin, _ = preset.read_task(tmp_path / "ours", Task)
    kept = variables_by_path(twin.backbone, twin.heads)
    for path, variable in variables_by_path(task.backbone, task.heads).items():
        if not path.startswith("pooler/"):
            np.testing.assert_array_equal(to_numpy(kept[path]), to_numpy(variable), path)
    if own is TokenClassifier:
        assert task.labels == twin.labels == NAMES
        assert again.config.id2label == dict(enumerate(NAMES))


def test_G1_a_head_keeps_the_names_it_was_trained_with(tmp_path):
    theirs("Bert", "TokenClassification", **NAMED).save_pretrained(tmp_path / "hf")
    with pytest.raises(ValueError, match="Expected labels=.*Received: labels="):
        TokenClassifier.from_preset(tmp_path / "hf", labels=NAMES[::-1])
    fresh = TokenClassifier.from_preset(
        tmp_path / "hf", labels=["O", "B-X"], new_heads=("token_classifier",)
    )
    assert fresh.num_classes == 2


def test_a_backbone_of_anything_gets_a_new_head(tmp_path):
    theirs("Bert", "QuestionAnswering").save_pretrained(tmp_path / "hf")
    task, report = preset.read_task(tmp_path / "hf", TokenClassifier, labels=NAMES)
    assert any(path.startswith("token_classifier/") for path in report.newly_initialised)
    assert task.labels == NAMES
