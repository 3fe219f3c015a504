"""Fine-tuning against a loop over Hugging Face transformers, step by step the same weights.

Clipping, decay, bias corrections and schedule included; without dropout, whose draws differ.
"""

import os

import numpy as np
import pytest

from keras_bert3 import TextClassifier
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.training.optimizers import AdamW
from keras_bert3.training.schedules import WarmupLinearDecay
from tests.parity.sizes import ENCODER, V1

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

UPDATES, PEAK = 5, 1e-3
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def batches():
    """Ids with padding, a mask and labels."""
    rng = np.random.default_rng(3)
    for _ in range(UPDATES):
        ids = rng.integers(1, 43, (4, 8)).astype("int32")
        ids[1, 5:] = 0
        yield ids, (ids > 0).astype("int32"), rng.integers(0, 3, 4)


def schedule():
    return WarmupLinearDecay(PEAK, 2, UPDATES)


def train_theirs(model):
    groups = [{"params": [], "weight_decay": decay} for decay in (0.01, 0.0)]
    for name, parameter in model.named_parameters():
        groups[name.endswith("bias") or "LayerNorm" in name]["params"].append(parameter)
    optimizer = torch.optim.AdamW(groups, PEAK)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: float(schedule()(t)) / PEAK)
    for ids, mask, labels in batches():
        ids, mask, labels = (torch.tensor(x).long() for x in (ids, mask, labels))
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert norm > 1  # so that clipping counts
        optimizer.step()
        rate.step()
        optimizer.zero_grad()


@pytest.mark.parametrize(("family", "size"), [("Bert", ENCODER), ("Deberta", V1)])
def test_a_few_updates_reach_the_same_weights(tmp_path, family, size):
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**size, **NO_DROPOUT, num_labels=3)
    model = getattr(transformers, f"{family}ForSequenceClassification")(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.mul_(8.0)
    model.save_pretrained(tmp_path / "start")
    start = {name: value.clone() for name, value in model.state_dict().items()}
    train_theirs(model.train())
    task, _ = preset.read_task(tmp_path / "start", TextClassifier, dropout=0.0)
    task.compile(AdamW(schedule()), run_eagerly=False)
    for ids, mask, labels in batches():
        task.train_on_batch({"token_ids": ids, "padding_mask": mask}, labels)
    save_huggingface(task, tmp_path / "end")
    ours = type(model).from_pretrained(tmp_path / "end").state_dict()
    for name, value in model.state_dict().items():
        moved = (value - start[name]).norm()
        if name.endswith("key.bias") or not moved:
            continue  # a softmax does not see it: its gradient is rounding, which Adam magnifies
        assert (ours[name] - value).norm() < 1e-3 * moved, name
