import json
import sys

import numpy as np
import pytest

from keras_bert3 import BertBackbone, GPTBackbone, MaskedLM, TextClassifier
from keras_bert3.checkpoints import google_bert, preset
from keras_bert3.checkpoints.google_bert import save_google_bert
from tests.checkpoints.models import VOCABULARY, assert_same_weights, backbone, masked_lm, tokenizer

tensorflow = pytest.importorskip("tensorflow", exc_type=ImportError)

H, V = 8, 24
# Names and shapes in the released checkpoints (google-research/bert modeling.py and
# run_pretraining.py).
SHAPES = {
    "bert/embeddings/word_embeddings": (V, H),
    "bert/embeddings/token_type_embeddings": (2, H),
    "bert/embeddings/position_embeddings": (16, H),
    "bert/embeddings/LayerNorm/gamma": (H,),
    "bert/embeddings/LayerNorm/beta": (H,),
    "bert/pooler/dense/kernel": (H, H),
    "bert/pooler/dense/bias": (H,),
    "cls/predictions/transform/dense/kernel": (H, H),
    "cls/predictions/transform/dense/bias": (H,),
    "cls/predictions/transform/LayerNorm/gamma": (H,),
    "cls/predictions/transform/LayerNorm/beta": (H,),
    "cls/predictions/output_bias": (V,),
    "cls/seq_relationship/output_weights": (2, H),
    "cls/seq_relationship/output_bias": (2,),
}
for i in (0, 1):
    layer = f"bert/encoder/layer_{i}"
    for name, shape in {
        "attention/self/query": (H, H),
        "attention/self/key": (H, H),
        "attention/self/value": (H, H),
        "attention/output/dense": (H, H),
        "intermediate/dense": (H, 12),
        "output/dense": (12, H),
    }.items():
        SHAPES[f"{layer}/{name}/kernel"] = shape
        SHAPES[f"{layer}/{name}/bias"] = shape[-1:]
    for name in ("attention/output", "output"):
        SHAPES |= {f"{layer}/{name}/LayerNorm/{part}": (H,) for part in ("gamma", "beta")}
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": H,
    "initializer_range": 0.02,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": V,
}


def write(folder, tensors):
    """Write a checkpoint of named variables with TensorFlow's own saver."""
    folder.mkdir(exist_ok=True)
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        for name, value in tensors.items():
            v1.get_variable(name, initializer=value, use_resource=False)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "bert_model.ckpt"), write_meta_graph=False)
    return folder


def random_tensors():
    generator = np.random.default_rng(0)
    return {n: generator.normal(size=s).astype("float32") for n, s in SHAPES.items()}


def test_a_released_checkpoint(tmp_path):
    tensors = random_tensors()
    folder = write(tmp_path / "g", tensors)
    task, report = preset.read_task(folder, MaskedLM)
    assert task.backbone.activation == "gelu_tanh"
    assert task.backbone.layer_norm_epsilon == 1e-12
    assert len(report.loaded) == len(SHAPES) == len(task.weights)
    assert not (report.newly_initialised or report.unexpected or report.ignored)
    bert, block = task.backbone, task.backbone.blocks[1]
    for variable, name in (
        (bert.token_embeddings, "bert/embeddings/word_embeddings"),
        (bert.embeddings.norm.gamma, "bert/embeddings/LayerNorm/gamma"),
        (block.attention.query.kernel, "bert/encoder/layer_1/attention/self/query/kernel"),
        (block.attention.key.kernel, "bert/encoder/layer_1/attention/self/key/kernel"),
        (block.attention.value.bias, "bert/encoder/layer_1/attention/self/value/bias"),
        (block.attention_norm.beta, "bert/encoder/layer_1/attention/output/LayerNorm/beta"),
        (block.output_norm.beta, "bert/encoder/layer_1/output/LayerNorm/beta"),
        (task.masked_lm_head.bias, "cls/predictions/output_bias"),
        (task.next_sentence_head.kernel, "cls/seq_relationship/output_weights"),
    ):
        wanted = tensors[name].T if name.endswith("output_weights") else tensors[name]
        np.testing.assert_array_equal(np.asarray(variable.numpy()), wanted)


def test_C8_optimizer_slots_are_ignored_and_reported(tmp_path):
    tensors = random_tensors()
    plain = MaskedLM.from_preset(write(tmp_path / "plain", tensors))
    slots = {"global_step": np.int64(7)}
    for name in ("bert/pooler/dense/kernel", "cls/predictions/output_bias"):
        slots |= {f"{name}/adam_{moment}": tensors[name] * 0 for moment in "mv"}
    folder = write(tmp_path / "slots", {**tensors, **slots})
    task, report = preset.read_task(folder, MaskedLM)
    assert_same_weights(plain, task)
    assert set(report.ignored) == set(slots)
    assert not report.unexpected


def test_written_and_read_again(tmp_path):
    saved = masked_lm(tokenizer=tokenizer(lowercase=False))
    save_google_bert(saved, tmp_path / "g")
    shapes = dict(tensorflow.train.list_variables(str(tmp_path / "g" / "bert_model.ckpt")))
    assert {name: tuple(shape) for name, shape in shapes.items()} == SHAPES
    assert json.loads((tmp_path / "g" / "bert_config.json").read_text()) == CONFIG
    loaded = MaskedLM.from_preset(tmp_path / "g")
    assert_same_weights(saved, loaded)
    assert loaded.preprocessor.tokenizer.vocabulary == VOCABULARY
    assert loaded.preprocessor.tokenizer.lowercase is False


def test_capitals_tell_a_cased_vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    description = google_bert.Description("BertBackbone", {})
    assert google_bert.load_tokenizer(tmp_path, description).lowercase
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "Hello"]) + "\n")
    assert not google_bert.load_tokenizer(tmp_path, description).lowercase


@pytest.mark.parametrize("slots", [False, True])
def test_an_index_tells_the_heads(tmp_path, slots):
    def described(name, *prefixes):
        kept = {n: v for n, v in random_tensors().items() if not n.startswith(prefixes)}
        moments = {f"{n}/adam_{m}": v for n, v in kept.items() for m in "mv" if slots}
        return google_bert.describe(write(tmp_path / name, {**kept, **moments}))

    both, one = described("both", "?"), described("one", "cls/seq")
    assert (both.task_class, both.task_config) == ("MaskedLM", {"next_sentence": True})
    assert (one.task_class, one.task_config) == ("MaskedLM", {"next_sentence": False})
    for name in ("cls/", "cls/predictions"):
        assert described(name.replace("/", "_"), name).task_class is None


def test_their_classifier_keeps_its_head(tmp_path):
    tensors = {n: v for n, v in random_tensors().items() if not n.startswith("cls/")}
    head = np.arange(24, dtype="float32").reshape(3, 8)
    tensors |= {"output_weights": head, "output_bias": np.ones(3, "float32")}
    folder = write(tmp_path / "g", tensors)
    task, report = preset.read_task(folder, TextClassifier, num_classes=3, preprocessor=None)
    np.testing.assert_array_equal(np.asarray(task.classifier.kernel.numpy()), head.T)
    assert not report.newly_initialised and not report.unexpected


def test_what_their_code_cannot_compute_is_not_written(tmp_path):
    gpt = GPTBackbone(20, 1, 2, 8, 12)
    with pytest.raises(ValueError, match="Expected a `BertBackbone`.*Received: a `GPTBackbone`"):
        save_google_bert(gpt, tmp_path / "g")
    with pytest.raises(ValueError, match="Expected an activation among.*'gelu_erf'"):
        save_google_bert(backbone(activation="gelu_erf"), tmp_path / "g")
    with pytest.raises(ValueError, match="Expected layer_norm_epsilon=1e-12.*1e-07"):
        save_google_bert(backbone(layer_norm_epsilon=1e-7), tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_broken_files_are_named(tmp_path):
    folder = write(tmp_path / "g", random_tensors())
    data = next(folder.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(ValueError, match="Expected a whole TensorFlow checkpoint at '.*ckpt'"):
        preset.load_backbone(folder, BertBackbone)
    (folder / "bert_model.ckpt.index").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="Expected a whole TensorFlow checkpoint at '.*ckpt'"):
        preset.load_backbone(folder, BertBackbone)
    (folder / "bert_model.ckpt.index").unlink()
    with pytest.raises(ValueError, match="Expected one TensorFlow checkpoint.*Received: none"):
        preset.load_backbone(folder, BertBackbone)


def test_without_tensorflow_the_extra_is_named(tmp_path, monkeypatch):
    folder = write(tmp_path / "g", random_tensors())
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match=r"keras-bert3\[tensorflow\]"):
        google_bert.load_weights(folder, backbone(), {})
