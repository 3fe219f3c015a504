from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert3 import CausalLM, CausalLMPreprocessor, GPTBackbone, LSTMBackbone
from keras_bert3.benchmarks import hub
from keras_bert3.benchmarks.examples import Examples
from keras_bert3.checkpoints.variables import variables_by_path
from keras_bert3.runs import transfer
from keras_bert3.tokenizers.byte_pair_training import train_byte_pair
from tests.layer_checks import to_numpy

TEXTS = ["a joy to see", "a bore to see", "pure joy", "what a bore"] * 2
EXAMPLES = Examples((TEXTS,), ["positive", "negative"] * 4, [str(i) for i in range(8)])
CONFIG = SimpleNamespace(
    variants=("full",),
    seeds=2,
    sequence_length=8,
    batch_size=8,
    epochs=40,
    learning_rate=0.03,
)
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
        (None, {"embeddings", "block_0", "block_1"}),
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
    sst2 = hub.find("sst2")
    for variant, (parts, weight) in wanted.items():
        task = transfer.make_task(variant, pretrained, sst2, 12)
        assert equal_parts(task.backbone, pretrained.backbone) == parts
        assert task.auxiliary_lm_weight == weight
        assert task.backbone.vocabulary_size == TOKENIZER.vocabulary_size + 3
    assert transfer.expand_variants(["layers", *wanted], 2) == [
        *("layers=0", "layers=1", "layers=2", "full", "no_auxiliary", "no_pretraining")
    ]
    for variant in ("layers=3", "layers=", "none"):
        with pytest.raises(ValueError, match=f"k up to 2. Received: '{variant}'"):
            transfer.expand_variants([variant], 2)


def test_settings_that_cannot_work_are_refused(pretrained):
    lstm = CausalLM(LSTMBackbone(9, 4), pretrained.preprocessor)
    bare = CausalLM(pretrained.backbone)
    for length, model, message in (
        (13, pretrained, "sequence_length up to 12, .*Received: 13"),
        (12, lstm, "preset of a GPT-1. Received: one of LSTMBackbone"),
        (12, bare, "preset with a tokenizer"),
    ):
        config = SimpleNamespace(variants=("full",), sequence_length=length)
        with pytest.raises(ValueError, match=message):
            transfer.check(config, model, None)


def test_an_lstm_is_new_or_pretrained_and_never_trained_itself(pretrained):
    sst2 = hub.find("sst2")
    task = transfer.make_task("lstm", pretrained, sst2, 12)
    assert isinstance(task.backbone, LSTMBackbone) and task.backbone.hidden_dim == 16
    lstm = CausalLM(LSTMBackbone(task.backbone.vocabulary_size, 4), task.preprocessor)
    made = transfer.make_task("lstm", pretrained, sst2, 12, lstm).backbone
    assert made is not lstm.backbone
    for ours, theirs in zip(made.weights, lstm.backbone.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours.value), to_numpy(theirs.value))


def test_a_benchmark_chooses_the_task(pretrained):
    names = {"rte": "GPTTextClassifier", "stsb": "GPTSimilarity", "copa": "GPTMultipleChoice"}
    for benchmark, name in names.items():
        task = transfer.make_task("full", pretrained, hub.find(benchmark), 12)
        assert type(task).__name__ == name
    with pytest.raises(ValueError, match="for GPT-1. Received: SQuAD"):
        transfer.read(SimpleNamespace(benchmark="squad1", data="nowhere"))


def test_fine_tuning_learns_the_labels_and_goes_on_where_it_was(pretrained, tmp_path):
    (tmp_path / "metrics.csv").write_text(
        "variant,seed,metric,score\nfull,1,accuracy,0.25\nlayers=0,0,accuracy,0.5\n"
    )
    data = hub.find("sst2"), EXAMPLES, EXAMPLES
    rows = transfer.compare(tmp_path, CONFIG, data, pretrained)
    wanted = [("full", 1, 0.25), ("layers=0", 0, 0.5), ("full", 0, 1.0)]
    assert [(row["variant"], row["seed"], row["score"]) for row in rows] == wanted
    assert transfer.compare(tmp_path, CONFIG, data, pretrained) == rows
    means = transfer.means_of(rows)
    assert means["full"] == (0.625, pytest.approx(0.75 / 2**0.5))
    assert transfer.layer_curve(means, 2) == [(0, 0.5, 0.0), (2, *means["full"])]
    transfer.save(tmp_path, rows, 0.5)
    assert "| full | 0.6250 | 0.5303 | 2 |" in (tmp_path / "results.md").read_text()


def test_guessing_is_scored_as_the_benchmark_does():
    rows = ["acceptable", "acceptable", "unacceptable"]
    for benchmark, labels, wanted in (
        ("cola", rows, 0.0),
        ("rte", ["entailment", "not_entailment", "entailment"], 2 / 3),
        ("copa", [1, 0, 1], 2 / 3),
        ("stsb", [1.0, 2.0, 5.0], None),
    ):
        examples = Examples(([],), labels, ["0", "1", "2"])
        assert transfer.guessing(hub.find(benchmark), examples) == pytest.approx(wanted)
