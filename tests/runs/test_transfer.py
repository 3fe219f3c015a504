import csv

import numpy as np
import pytest

from keras_bert3 import CausalLM, CausalLMPreprocessor, GPTBackbone, LSTMBackbone
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.runs import transfer
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from tests.layer_checks import to_numpy

TEXTS = ["a joy to see", "a bore to see", "pure joy", "what a bore"] * 2
LABELS = ["good", "bad"] * 4
TOKENIZER = train_byte_pair(TEXTS, 20, "bert")


@pytest.fixture(scope="module")
def pretrained():
    size = {"num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32, "dropout": 0.0}
    backbone = GPTBackbone(TOKENIZER.vocabulary_size, 2, max_sequence_length=12, **size)
    for weight in backbone.trainable_weights:  # other values than a new model's
        weight.assign(weight.value * 1.5 + 0.01)
    return CausalLM(backbone, CausalLMPreprocessor(TOKENIZER))


def equal_parts(first, second):
    """First names of the paths below which two backbones' kernels and tables are equal."""
    theirs = variables_by_path(second)
    parts = {}
    for path, variable in variables_by_path(first).items():
        if path.endswith(("kernel", "embeddings")):
            rows = theirs[path].shape[0]
            same = np.array_equal(to_numpy(variable.value)[:rows], to_numpy(theirs[path].value))
            parts.setdefault(path.split("/")[0], set()).add(same)
    return {part for part, found in parts.items() if found == {True}}


def test_so_many_blocks_are_transferred_and_no_more(pretrained):
    for count, wanted in (
        (-1, set()),
        (0, {"embeddings"}),
        (1, {"embeddings", "block_0"}),
        (2, {"embeddings", "block_0", "block_1"}),
    ):
        made = transfer.partly_pretrained(pretrained.backbone, count)
        assert equal_parts(made, pretrained.backbone) == wanted


def test_variants_are_networks_and_losses(pretrained):
    wanted = {
        "full": ({"embeddings", "block_0", "block_1"}, 0.5),
        "layers=1": ({"embeddings", "block_0"}, 0.5),
        "no_auxiliary": ({"embeddings", "block_0", "block_1"}, 0.0),
        "no_pretraining": (set(), 0.5),
    }
    for variant, (parts, weight) in wanted.items():
        task = transfer.make_classifier(variant, pretrained, ["bad", "good"], 12)
        assert equal_parts(task.backbone, pretrained.backbone) == parts
        assert task.auxiliary_lm_weight == weight
        assert task.backbone.vocabulary_size == TOKENIZER.vocabulary_size + 3
    task = transfer.make_classifier("lstm", pretrained, ["bad", "good"], 12)
    assert isinstance(task.backbone, LSTMBackbone) and task.backbone.hidden_dim == 16
    transfer.check_variants(wanted, 2)
    for variant in ("layers=3", "layers=", "none"):
        with pytest.raises(ValueError, match=f"k up to 2. Received: '{variant}'"):
            transfer.check_variants([variant], 2)


def test_fine_tuning_learns_the_labels(pretrained):
    task = transfer.make_classifier("full", pretrained, ["bad", "good"], 8)
    data = TEXTS, LABELS
    assert transfer.fine_tune(task, data, data, 0.03, 40, 8, seed=0) == 1.0
    assert transfer.majority(["a", "b", "a"]) == pytest.approx(2 / 3)


def test_rows_are_appended(tmp_path):
    for value in (1, 2):
        transfer.append_row(tmp_path / "t.csv", {"variant": "full", "accuracy": value})
    with (tmp_path / "t.csv").open() as file:
        assert [row["accuracy"] for row in csv.DictReader(file)] == ["1", "2"]
