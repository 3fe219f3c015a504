import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert3 import BertBackbone, MaskedLM, Task
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.huggingface import save_huggingface
from tests.checkpoints.models import VOCABULARY, assert_same_weights, backbone, masked_lm, tokenizer

FILE = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    """The folder of a whole pretraining model, with its tokenizer."""
    settings = {"lowercase": False, "special_tokens_in_text": True}
    save_huggingface(masked_lm(tokenizer=tokenizer(**settings)), tmp_path / "hf")
    return tmp_path / "hf"


def rewrite(folder, change):
    """Replace the tensors of a folder by `change(tensors)`."""
    tensors = {name: value.copy() for name, value in load_file(folder / FILE).items()}
    save_file(change(tensors), folder / FILE)


def renamed(rename):
    return lambda tensors: {rename(name): value for name, value in tensors.items()}


def set_config(folder, **entries):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **entries}))


def assert_same_model(task, seed=0):
    expected = masked_lm(seed)
    assert_same_weights(expected.backbone, task.backbone)
    for name in expected.heads:
        assert_same_weights(expected.heads[name], task.heads[name])


def test_round_trip_is_bit_equal(folder):
    task, report = preset.read_task(folder, Task)
    assert type(task) is MaskedLM and task.next_sentence
    assert_same_model(task)
    assert len(report.loaded) == len(task.weights)
    assert not (report.newly_initialised or report.unexpected or report.ignored)
    settings = task.preprocessor.tokenizer.get_config()
    assert settings["vocabulary"] == VOCABULARY and settings["lowercase"] is False
    assert settings["special_tokens_in_text"] is True


def test_C1_old_names_of_layer_normalisation(folder):
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def to_old(name):
        for new, gamma in old.items():
            name = name.replace(new, gamma)
        return name

    rewrite(folder, renamed(to_old))
    assert any("gamma" in name for name in load_file(folder / FILE))
    task, report = preset.read_task(folder, MaskedLM)
    assert_same_model(task)
    assert not report.newly_initialised and not report.unexpected


def test_C2_a_checkpoint_without_pooler_and_heads(folder):
    rewrite(
        folder,
        lambda tensors: {
            n: v for n, v in tensors.items() if not n.startswith(("cls.", "bert.pooler"))
        },
    )
    loaded, report = preset.read_backbone(folder, BertBackbone)
    assert report.newly_initialised == ("pooler/dense/kernel", "pooler/dense/bias")
    kernel = np.asarray(loaded.pooler.dense.kernel.numpy())
    assert 0.005 < kernel.std() < 0.05, "drawn, not left blank"
    with pytest.raises(ValueError, match="'masked_lm_head', 'next_sentence_head'.*to start"):
        MaskedLM.from_preset(folder)
    heads = ("masked_lm_head", "next_sentence_head")
    task, report = preset.read_task(folder, MaskedLM, new_heads=heads)
    assert {path.split("/")[0] for path in report.newly_initialised} == {"pooler", *heads}
    assert np.asarray(task.masked_lm_head.dense.kernel.numpy()).std() > 0.005


@pytest.mark.parametrize("prefix", ["", "module.bert.", "model.bert."])
def test_C3_other_prefixes(folder, prefix):
    outer = prefix.removesuffix("bert.")
    rewrite(
        folder,
        renamed(lambda n: prefix + n[5:] if n.startswith("bert.") else outer + n),
    )
    task, report = preset.read_task(folder, MaskedLM)
    assert_same_model(task)
    assert not report.unexpected


def test_C3_nothing_in_common_is_an_error(folder):
    rewrite(folder, renamed(lambda name: "x" + name.replace(".", "_")))
    with pytest.raises(ValueError, match="none that match among 46"):
        preset.load_backbone(folder, BertBackbone)


def test_a_missing_weight_is_named(folder):
    gone = "bert.encoder.layer.1.output.dense.weight"
    rewrite(folder, lambda tensors: {n: v for n, v in tensors.items() if n != gone})
    with pytest.raises(ValueError, match="none for block_1/feed_forward/output_projection/kernel"):
        preset.load_backbone(folder, BertBackbone)


def test_half_a_head_is_refused(folder):
    gone = "cls.predictions.transform.dense.weight"
    rewrite(folder, lambda tensors: {n: v for n, v in tensors.items() if n != gone})
    with pytest.raises(ValueError, match="none for masked_lm_head/dense/kernel"):
        MaskedLM.from_preset(folder)


def test_copies_of_tied_tensors(folder):
    def tie(tensors):
        tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
        table = tensors["bert.embeddings.word_embeddings.weight"]
        return {**tensors, "cls.predictions.decoder.weight": table.copy()}

    rewrite(folder, tie)
    task, report = preset.read_task(folder, MaskedLM)
    assert_same_model(task)
    assert not report.unexpected
    rewrite(folder, lambda t: {**t, "cls.predictions.bias": t["cls.predictions.decoder.bias"] + 1})
    with pytest.raises(ValueError, match="to be the same tensor"):
        MaskedLM.from_preset(folder)


def test_buffers_are_ignored_and_strangers_reported(folder):
    buffers = {"bert.embeddings.position_ids": np.arange(16)[None]}
    strangers = {"classifier.weight": np.ones((3, 8), "float32")}
    rewrite(folder, lambda tensors: {**tensors, **buffers, **strangers})
    _, report = preset.read_task(folder, MaskedLM)
    assert report.ignored == ("bert.embeddings.position_ids",)
    assert report.unexpected == ("classifier.weight",)


def test_C5_pickled_weights(folder):
    torch = pytest.importorskip("torch")
    tensors = {n: torch.tensor(v.copy()) for n, v in load_file(folder / FILE).items()}
    (folder / FILE).unlink()
    for zipped in (True, False):
        torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        assert_same_model(MaskedLM.from_preset(folder))
    whole = (folder / "pytorch_model.bin").read_bytes()
    for broken in (b"", whole[:100], whole[: len(whole) // 2]):
        (folder / "pytorch_model.bin").write_bytes(broken)
        with pytest.raises(ValueError, match="Expected PyTorch weights at '.*pytorch_model.bin'"):
            MaskedLM.from_preset(folder)


class Evil:
    def __reduce__(self):
        return print, ("arbitrary code",)


def test_C5_pickles_run_no_code(folder, capsys):
    torch = pytest.importorskip("torch")
    (folder / FILE).unlink()
    torch.save({"bert.x": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="Expected PyTorch weights at") as refused:
        MaskedLM.from_preset(folder)
    assert "arbitrary" not in capsys.readouterr().out
    assert "print" in str(refused.value) and "weights_only" not in str(refused.value)
    torch.save([1, 2], folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="a dict of tensors at .*Received: a list"):
        MaskedLM.from_preset(folder)


def shard(folder, names=("a.safetensors", "b.safetensors")):
    tensors = load_file(folder / FILE)
    (folder / FILE).unlink()
    weight_map = {name: names[i % 2] for i, name in enumerate(sorted(tensors))}
    for file in names:
        part = {n: v for n, v in tensors.items() if weight_map[n] == file}
        save_file(part, folder / file.rsplit("/", 1)[-1])
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / f"{FILE}.index.json").write_text(json.dumps(index))


def test_C6_shards(folder):
    shard(folder)
    assert_same_model(MaskedLM.from_preset(folder))
    (folder / "b.safetensors").unlink()
    with pytest.raises(ValueError, match="Expected the shard '.*b.safetensors'"):
        MaskedLM.from_preset(folder)


def test_C6_a_shard_without_what_the_index_says(folder):
    shard(folder)
    (folder / "b.safetensors").write_bytes((folder / "a.safetensors").read_bytes())
    with pytest.raises(ValueError, match="in '.*b.safetensors', as .* says"):
        MaskedLM.from_preset(folder)


@pytest.mark.parametrize("name", ["../a.safetensors", "/etc/passwd", "x/../../a", "..\\a", ".."])
def test_an_index_leads_nowhere_else(folder, name):
    shard(folder)
    index = folder / f"{FILE}.index.json"
    index.write_text(index.read_text().replace('"a.safetensors"', json.dumps(name)))
    with pytest.raises(ValueError, match="Expected files beside|Expected the shard"):
        MaskedLM.from_preset(folder)


@pytest.mark.parametrize("size", [0, 7, 100, 5000])
def test_a_truncated_file_is_named(folder, size):
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:size])
    with pytest.raises(ValueError, match="Expected a whole safetensors file at '.*safetensors'"):
        MaskedLM.from_preset(folder)


def test_no_weights_at_all(folder):
    (folder / FILE).unlink()
    with pytest.raises(ValueError, match="Expected one of model.safetensors.*Received: none"):
        MaskedLM.from_preset(folder)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_upcast(tmp_path, dtype):
    saved = masked_lm()
    save_huggingface(saved, tmp_path / "hf", dtype=dtype)
    loaded = MaskedLM.from_preset(tmp_path / "hf")
    assert loaded.backbone.variable_dtype == "float32"
    for weight, kept in zip(saved.weights, loaded.weights, strict=True):
        wanted = np.asarray(weight.numpy()).astype(dtype).astype("float32")
        np.testing.assert_array_equal(np.asarray(kept.numpy()), wanted)


def test_a_weight_that_half_precision_cannot_hold_is_named_before_anything_is_written(tmp_path):
    saved = backbone()
    kernel = saved.pooler.dense.kernel
    kernel.assign(np.full(kernel.shape, 1e5, "float32"))
    named = "that float16 can hold.*`bert.pooler.dense.weight`, whose largest value is 100000.0"
    with pytest.raises(ValueError, match=named):
        save_huggingface(saved, tmp_path / "hf", dtype="float16")
    assert not any(tmp_path.iterdir())


def test_a_tensor_of_another_shape_is_named(folder):
    set_config(folder, vocab_size=25)
    with pytest.raises(ValueError, match=r"\(25, 8\) for `embeddings/token.*\(24, 8\) from `bert"):
        MaskedLM.from_preset(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"hidden_act": "mish"}, "Expected hidden_act among"),
        ({"hidden_act": ["gelu"]}, "Expected hidden_act among"),
        ({"position_embedding_type": "relative_key"}, "Expected position_embedding_type"),
        ({"is_decoder": True}, "Expected is_decoder=False"),
        ({"model_type": "roberta"}, "Expected model_type among.*'roberta'"),
        ({"model_type": ["bert"]}, "configuration of a model in '.*hf'.*unhashable"),
        ({"architectures": 3}, "configuration of a model in '.*hf'"),
        ({"num_attention_heads": 3}, "`BertBackbone` can be made in '.*hf'.*num_heads=3"),
        ({"hidden_dropout_prob": "much"}, "`BertBackbone` can be made in '.*hf'"),
    ],
)
def test_what_we_cannot_compute_is_refused(folder, entries, message):
    set_config(folder, **entries)
    with pytest.raises(ValueError, match=message):
        MaskedLM.from_preset(folder)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gelu", "gelu_erf"), ("gelu_new", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh")],
)
def test_activations(folder, theirs, ours):
    set_config(folder, hidden_act=theirs)
    assert preset.load_backbone(folder, BertBackbone).activation == ours


def test_what_is_written_names_its_activation(tmp_path):
    for ours, theirs in (("gelu_erf", "gelu"), ("gelu_tanh", "gelu_new"), ("relu", "relu")):
        save_huggingface(backbone(activation=ours), tmp_path / ours)
        assert json.loads((tmp_path / ours / "config.json").read_text())["hidden_act"] == theirs
    with pytest.raises(ValueError, match="Expected an activation among.*'elu'"):
        save_huggingface(backbone(activation="elu"), tmp_path / "elu")
    assert not (tmp_path / "elu").exists()


def test_other_dtypes_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="Expected dtype among float32.*'int8'"):
        save_huggingface(backbone(), tmp_path / "hf", dtype="int8")


def test_a_masked_lm_alone_is_written_without_pooler(tmp_path):
    saved = MaskedLM(backbone(), next_sentence=False)
    save_huggingface(saved, tmp_path / "hf")
    assert not any("pooler" in name for name in load_file(tmp_path / "hf" / FILE))
    task, report = preset.read_task(tmp_path / "hf", Task)
    assert task.next_sentence is False
    assert report.newly_initialised == ("pooler/dense/kernel", "pooler/dense/bias")


def test_tokenizer_out_of_tokenizer_json_alone(folder):
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    normalizer = {"lowercase": True, "strip_accents": False, "handle_chinese_chars": False}
    model = {"vocab": {token: i for i, token in enumerate(VOCABULARY)}}
    content = {"normalizer": normalizer, "model": {**model, "max_input_chars_per_word": 77}}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    config = MaskedLM.from_preset(folder).preprocessor.tokenizer.get_config()
    assert config.pop("vocabulary") == VOCABULARY
    expected = {"lowercase": True, "strip_accents": False, "split_chinese_characters": False}
    expected |= {"max_word_length": 77, "special_tokens_in_text": False, "added_tokens": []}
    assert config == expected


def test_a_vocabulary_that_does_not_say_its_case_is_refused(folder):
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match="do_lower_case.*Received: a vocabulary alone"):
        MaskedLM.from_preset(folder)
    assert MaskedLM.from_preset(folder, preprocessor=None).preprocessor is None


def test_a_tokenizer_with_more_tokens_than_rows_is_refused(folder):
    with open(folder / "vocab.txt", "a") as file:
        file.write("more\n")
    with pytest.raises(ValueError, match="Expected a tokenizer of at most 24 tokens.*25 tokens"):
        MaskedLM.from_preset(folder)
