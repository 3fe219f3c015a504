"""Fine-tuning against a loop over Hugging Face transformers, step by step the same weights.

Clipping, decay, bias corrections and schedule included; on PyTorch dropout too, by the same draws.
Their loss of answers has padding in its softmax; without it, it is ours.
"""

import os

import keras
import numpy as np
import pytest

from keras_bert3 import ExtractiveQA, TextClassifier, TokenClassifier
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from keras_bert3.training.optimizers import AdamW
from keras_bert3.training.schedules import WarmupLinearDecay
from tests.parity.sizes import ENCODER, V1

torch = pytest.importorskip("torch")
os.environ.setdefault("USE_TF", "0")
transformers = pytest.importorskip("transformers")

UPDATES, PEAK = 5, 1e-3
DROPOUT = 0.1 if keras.backend.backend() == "torch" else 0.0
THEIR_DROPOUT = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}


def batches():
    """Ids with padding and a mask; what an update draws on PyTorch is the same for both."""
    rng = np.random.default_rng(3)
    for update in range(UPDATES):
        torch.manual_seed(update)
        ids = rng.integers(1, 43, (4, 8)).astype("int32")
        ids[1, 5:] = 0
        yield ids, (ids > 0).astype("int32")


def class_targets(ids, mask):
    return ids[:, 1] % 3


def span_targets(ids, mask):
    return np.stack([ids[:, 1] % 3, 3 + ids[:, 2] % 2])


def token_targets(ids, mask):
    return np.where(mask, ids % 3, -100)


def labelled_loss(model, inputs, labels):
    return model(**inputs, labels=labels).loss


def masked_span_loss(model, inputs, labels):
    outputs = model(**inputs)
    hidden = torch.where(inputs["attention_mask"] > 0, 0.0, -torch.inf)
    logits = outputs.start_logits + hidden, outputs.end_logits + hidden
    return sum(map(torch.nn.functional.cross_entropy, logits, labels)) / 2


def fit_labels(task, inputs, labels):
    task.train_on_batch(inputs, labels)


def fit_spans(task, inputs, labels):
    task.train_on_batch(inputs, dict(zip(("start", "end"), labels, strict=True)))


def fit_tokens(task, inputs, labels):
    task.train_on_batch(inputs, labels.clip(0), sample_weight=(labels >= 0).astype("float32"))


TASKS = {
    "SequenceClassification": (TextClassifier, class_targets, labelled_loss, fit_labels),
    "QuestionAnswering": (ExtractiveQA, span_targets, masked_span_loss, fit_spans),
    "TokenClassification": (TokenClassifier, token_targets, labelled_loss, fit_tokens),
}


def schedule():
    return WarmupLinearDecay(PEAK, 2, UPDATES)


def train_theirs(model, targets, loss):
    groups = [{"params": [], "weight_decay": decay} for decay in (0.01, 0.0)]
    for name, parameter in model.named_parameters():
        groups[name.endswith("bias") or "LayerNorm" in name]["params"].append(parameter)
    optimizer = torch.optim.AdamW(groups, PEAK)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: float(schedule()(t)) / PEAK)
    for batch in batches():
        ids, mask, labels = (torch.tensor(x).long() for x in (*batch, targets(*batch)))
        loss(model, {"input_ids": ids, "attention_mask": mask}, labels).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert norm > 1  # so that clipping counts
        optimizer.step()
        rate.step()
        optimizer.zero_grad()


SHIFTS = {"QuestionAnswering": ("layer.0.output.LayerNorm.bias", "qa_outputs.bias")}
"""What shifts the scores of all tokens alike."""


@pytest.mark.parametrize(
    ("family", "size", "head"),
    [("Bert", ENCODER, head) for head in TASKS] + [("Deberta", V1, "SequenceClassification")],
)
def test_a_few_updates_reach_the_same_weights(tmp_path, family, size, head):
    ours, targets, their_loss, fit = TASKS[head]
    torch.manual_seed(0)
    count = {} if head == "QuestionAnswering" else {"num_labels": 3}
    config = getattr(transformers, f"{family}Config")(**size, **THEIR_DROPOUT, **count)
    model = getattr(transformers, f"{family}For{head}")(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.mul_(8.0)
    model.save_pretrained(tmp_path / "start")
    start = {name: value.clone() for name, value in model.state_dict().items()}
    train_theirs(model.train(), targets, their_loss)
    task, _ = preset.read_task(tmp_path / "start", ours, dropout=DROPOUT)
    task.compile(AdamW(schedule()), run_eagerly=False)
    for ids, mask in batches():
        fit(task, {"token_ids": ids, "padding_mask": mask}, targets(ids, mask))
    save_huggingface(task, tmp_path / "end")
    found = type(model).from_pretrained(tmp_path / "end").state_dict()
    for name, value in model.state_dict().items():
        moved = (value - start[name]).norm()
        if name.endswith(("key.bias", *SHIFTS.get(head, ()))) or not moved:
            continue  # a softmax does not see it: its gradient is rounding, which Adam magnifies
        assert (found[name] - value).norm() < 1e-3 * moved, name
