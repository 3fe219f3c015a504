import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert3
from keras_bert3 import Backbone, BertBackbone, MaskedLM, Task
from keras_bert3.checkpoints import native, preset
from tests.checkpoints.models import (
    SIZES,
    assert_same_weights,
    backbone,
    logits,
    masked_lm,
    tokenizer,
)


def test_backbone_round_trip_is_bit_equal(tmp_path):
    saved = backbone(layer_norm_epsilon=1e-7, activation="gelu_erf")
    preset.save_backbone(saved, tmp_path / "p")
    for cls in (Backbone, BertBackbone):
        loaded, report = preset.read_backbone(tmp_path / "p", cls)
        assert type(loaded) is BertBackbone
        assert (loaded.layer_norm_epsilon, loaded.activation) == (1e-7, "gelu_erf")
        assert_same_weights(saved, loaded)
        assert len(report.loaded) == len(saved.weights) and not report.newly_initialised
    assert "block_1/attention/query/kernel" in report.loaded


def test_task_round_trip_is_bit_equal_and_brings_its_tokenizer(tmp_path):
    saved = masked_lm(tokenizer=tokenizer(lowercase=False))
    preset.save_task(saved, tmp_path / "p")
    for cls in (Task, MaskedLM):
        loaded, report = preset.read_task(tmp_path / "p", cls)
        assert type(loaded) is MaskedLM
        assert_same_weights(saved.backbone, loaded.backbone)
        for name in saved.heads:
            assert_same_weights(saved.heads[name], loaded.heads[name])
        assert loaded.preprocessor.sequence_length == 16
        before, after = saved.preprocessor.tokenizer, loaded.preprocessor.tokenizer
        assert after.get_config() == before.get_config()
    assert "masked_lm_head/dense/kernel" in report.loaded
    assert "next_sentence_head/bias" in report.loaded
    expected = {"config.json", "checksums.json", "vocab.txt", "tokenizer_config.json"}
    expected |= {f"{name}.weights.h5" for name in ("model", *saved.heads)}
    assert {path.name for path in (tmp_path / "p").iterdir()} == expected


def test_overrides_reach_the_task_and_the_backbone(tmp_path):
    preset.save_task(masked_lm(tokenizer=tokenizer()), tmp_path / "p")
    task = preset.load_task(
        tmp_path / "p", MaskedLM, next_sentence=False, dropout=0.25, preprocessor=None
    )
    assert not task.next_sentence and task.preprocessor is None
    assert task.backbone.dropout == 0.25
    with pytest.raises(ValueError, match="Expected overrides.*Received: drop_out"):
        preset.load_task(tmp_path / "p", MaskedLM, drop_out=0.25)


def test_dtype_is_an_override_and_never_stored(tmp_path):
    saved = masked_lm(dtype="mixed_bfloat16")
    preset.save_task(saved, tmp_path / "p")
    assert "bfloat16" not in (tmp_path / "p" / "config.json").read_text()
    loaded = preset.load_task(tmp_path / "p", MaskedLM)
    assert loaded.backbone.compute_dtype == "float32"
    assert loaded.masked_lm_head.compute_dtype == "float32"
    assert_same_weights(saved.backbone, loaded.backbone)
    again = preset.load_task(tmp_path / "p", MaskedLM, dtype="mixed_bfloat16")
    assert again.masked_lm_head.compute_dtype == "bfloat16"


def test_a_bfloat16_model_is_upcast_exactly(tmp_path):
    saved = backbone(dtype="bfloat16")
    preset.save_backbone(saved, tmp_path / "p")
    loaded = preset.load_backbone(tmp_path / "p", BertBackbone)
    assert {keras.backend.standardize_dtype(w.dtype) for w in loaded.weights} == {"float32"}
    assert_same_weights(saved, loaded)


def test_a_frozen_model_is_stored_as_the_same_model(tmp_path):
    saved = backbone()
    saved.trainable = False
    preset.save_backbone(saved, tmp_path / "p")
    assert preset.load_backbone(tmp_path / "p", BertBackbone).trainable


def test_C2_missing_heads_are_refused_unless_asked_for(tmp_path):
    saved = backbone()
    preset.save_backbone(saved, tmp_path / "p")
    with pytest.raises(ValueError, match="new_heads=.*'masked_lm_head', 'next_sentence_head'"):
        preset.load_task(tmp_path / "p", MaskedLM)
    with pytest.raises(ValueError, match="new_heads=.*'next_sentence_head'"):
        preset.load_task(tmp_path / "p", MaskedLM, new_heads=("masked_lm_head",))
    with pytest.raises(ValueError, match="Expected `new_heads` among.*Received: span_head"):
        preset.load_task(tmp_path / "p", MaskedLM, new_heads=("span_head",))
    task, report = preset.read_task(
        tmp_path / "p", MaskedLM, new_heads=("masked_lm_head", "next_sentence_head")
    )
    assert_same_weights(saved, task.backbone)
    assert "masked_lm_head/bias" in report.newly_initialised


def test_heads_that_nobody_asked_for_are_reported(tmp_path):
    preset.save_task(masked_lm(), tmp_path / "p")
    _, report = preset.read_backbone(tmp_path / "p", BertBackbone)
    assert report.unexpected == ("masked_lm_head.weights.h5", "next_sentence_head.weights.h5")


def test_a_backbone_alone_does_not_say_which_task(tmp_path):
    preset.save_backbone(backbone(), tmp_path / "p")
    with pytest.raises(ValueError, match="Expected the checkpoint of a task"):
        preset.load_task(tmp_path / "p", Task)


def test_a_folder_in_use_is_refused_or_replaced_on_request(tmp_path):
    target = tmp_path / "p"
    first, second = backbone(1), backbone(2)
    target.mkdir()
    preset.save_backbone(first, target)
    with pytest.raises(ValueError, match="overwrite=True.*holds files"):
        preset.save_backbone(second, target)
    assert_same_weights(first, preset.load_backbone(target, BertBackbone))
    preset.save_backbone(second, target, overwrite=True)
    assert_same_weights(second, preset.load_backbone(target, BertBackbone))
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_a_folder_that_is_no_checkpoint_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="Expected a checkpoint to overwrite"):
        preset.save_backbone(backbone(), tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_failed_save_leaves_nothing_behind(tmp_path):
    class Broken:
        def save(self, folder):
            raise OSError("disk full")

    task = masked_lm(tokenizer=tokenizer())
    preset.save_task(task, tmp_path / "p")
    task.preprocessor.tokenizer = Broken()
    for target in ("p", "q"):
        with pytest.raises(OSError, match="disk full"):
            preset.save_task(task, tmp_path / target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    preset.load_task(tmp_path / "p", MaskedLM)


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_truncated_file_is_named(tmp_path, size):
    preset.save_backbone(backbone(), tmp_path / "p")
    file = tmp_path / "p" / "model.weights.h5"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ValueError, match="Expected '.*model.weights.h5' to hold.*Received: "):
        preset.load_backbone(tmp_path / "p", BertBackbone)


def test_a_missing_file_is_named(tmp_path):
    preset.save_backbone(backbone(), tmp_path / "p")
    (tmp_path / "p" / "model.weights.h5").unlink()
    with pytest.raises(ValueError, match="Expected weights at '.*model.weights.h5'"):
        preset.load_backbone(tmp_path / "p", BertBackbone)


@pytest.mark.parametrize("override", [{"hidden_dim": 16}, {"num_layers": 1}, {"num_layers": 3}])
def test_weights_of_other_shapes_are_refused(tmp_path, override):
    preset.save_backbone(backbone(), tmp_path / "p")
    with pytest.raises(ValueError, match="Expected '.*model.weights.h5' to hold"):
        preset.load_backbone(tmp_path / "p", BertBackbone, **override)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": "keras_bert3"}', '{"format": "keras_bert3", "backbone": 3}']
)
def test_a_broken_config_is_named(tmp_path, content):
    preset.save_backbone(backbone(), tmp_path / "p")
    (tmp_path / "p" / "config.json").write_text(content)
    with pytest.raises(ValueError, match="config.json"):
        preset.load_backbone(tmp_path / "p", BertBackbone)


@pytest.mark.parametrize("name", ["os.system", "Task", "layers", "MaskedLM", "nothing"])
def test_only_public_backbones_are_constructed(tmp_path, name):
    preset.save_backbone(backbone(), tmp_path / "p")
    config = json.loads((tmp_path / "p" / "config.json").read_text())
    config["backbone"]["class"] = name
    (tmp_path / "p" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"Received: .*{name}"):
        preset.load_backbone(tmp_path / "p", Backbone)


def test_an_unknown_folder_is_described(tmp_path):
    with pytest.raises(ValueError, match="no folder at"):
        preset.load_backbone(tmp_path / "nowhere", Backbone)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match="Received: a folder with notes.txt"):
        preset.load_backbone(tmp_path, Backbone)


def test_large_weights_are_spread_over_files(tmp_path):
    saved = backbone(hidden_dim=64)
    native.save(saved, tmp_path / "p", shard_size=0.0001)
    assert (tmp_path / "p" / "model.weights.json").exists()
    assert len(list((tmp_path / "p").glob("*.h5"))) > 1
    assert_same_weights(saved, preset.load_backbone(tmp_path / "p", BertBackbone))
    next(iter(sorted((tmp_path / "p").glob("*.h5")))).unlink()
    with pytest.raises(ValueError, match="model.weights.json"):
        preset.load_backbone(tmp_path / "p", BertBackbone)


def test_a_class_of_the_callers_own_is_found(tmp_path):
    class Mine(BertBackbone):
        pass

    preset.save_backbone(Mine(**SIZES), tmp_path / "p")
    assert type(preset.load_backbone(tmp_path / "p", Mine)) is Mine
    with pytest.raises(ValueError, match="public class"):
        preset.load_backbone(tmp_path / "p", BertBackbone)


def test_public_methods_use_the_same_folder(tmp_path):
    saved = masked_lm(tokenizer=tokenizer())
    saved.save_to_preset(tmp_path / "p")
    assert_same_weights(saved, keras_bert3.MaskedLM.from_preset(tmp_path / "p"))
    assert_same_weights(saved.backbone, Backbone.from_preset(str(tmp_path / "p")))


_SAVE_ON_ANOTHER_BACKEND = """
import sys
sys.path[:0] = [{tests!r}]
import numpy as np
from tests.checkpoints.models import logits, masked_lm
task = masked_lm(seed=5)
task.save_to_preset({folder!r})
np.savez({folder!r} + "/logits.npz", **logits(task))
"""


def test_C16_weights_saved_on_another_backend(tmp_path):
    other = "torch" if keras.backend.backend() == "jax" else "jax"
    pytest.importorskip(other)
    folder, tests = str(tmp_path / "p"), str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", _SAVE_ON_ANOTHER_BACKEND.format(tests=tests, folder=folder)],
        env={**os.environ, "KERAS_BACKEND": other},
        check=True,
        capture_output=True,
    )
    expected = np.load(tmp_path / "p" / "logits.npz")
    received = logits(MaskedLM.from_preset(folder))
    assert set(received) == set(expected.files) == {"masked_lm", "next_sentence"}
    for name in received:
        np.testing.assert_allclose(received[name], expected[name], atol=1e-4)
        assert np.abs(expected[name]).max() > 0.2


def test_R7_weights_only_and_the_optimizer_starts_fresh(tmp_path):
    task = masked_lm()
    task.compile()
    task.optimizer.build(task.trainable_variables)
    task.optimizer.iterations.assign(5)
    task.save_to_preset(tmp_path / "p")
    files = {path.name for path in (tmp_path / "p").iterdir()}
    weights = {f"{name}.weights.h5" for name in ("model", *task.heads)}
    assert files == {"config.json", "checksums.json", *weights}
    loaded = MaskedLM.from_preset(tmp_path / "p")
    assert_same_weights(task, loaded)
    assert not loaded.compiled


def test_a_tokenizer_goes_with_a_backbone(tmp_path):
    preset.save_backbone(backbone(), tmp_path / "p", tokenizer=tokenizer(lowercase=False))
    assert preset.read_tokenizer(tmp_path / "p").lowercase is False
    assert preset.task_name(tmp_path / "p") is None
    preset.save_task(masked_lm(), tmp_path / "q")
    assert preset.read_tokenizer(tmp_path / "q") is None
    assert preset.task_name(tmp_path / "q") == "MaskedLM"


def test_overrides_reach_what_a_constructor_hands_on_to_its_base(tmp_path):
    sizes = {**SIZES, "span": 4, "max_sequence_length": 16}
    preset.save_backbone(keras_bert3.DebertaV2Backbone(**sizes), tmp_path / "p")
    loaded = preset.load_backbone(tmp_path / "p", Backbone, dropout=0.0, dtype="mixed_bfloat16")
    assert (loaded.dropout, loaded.compute_dtype) == (0.0, "bfloat16")
    with pytest.raises(ValueError, match="Expected overrides.*Received: drop_out"):
        preset.load_backbone(tmp_path / "p", Backbone, drop_out=0.0)
