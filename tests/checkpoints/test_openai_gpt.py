import json

import numpy as np
import pytest

from keras_bert3 import CausalLM, GPTBackbone
from keras_bert3.checkpoints import preset
from keras_bert3.checkpoints.openai_gpt import save_openai_gpt
from tests.layer_checks import to_numpy

W, V, T = 64, 11, 8
# Order and shapes of the released arrays: openai/finetune-transformer-lm train.py.
LAYER = [[1, W, 3 * W], [3 * W], [1, W, W], [W], [W], [W]]
LAYER += [[1, W, 4 * W], [4 * W], [1, 4 * W, W], [W], [W], [W]]
SHAPES = [[T, W], [V, W], *LAYER, *LAYER]


def write(folder, num_files=10):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=shape).astype("float32") for shape in SHAPES]
    folder.mkdir()
    (folder / "params_shapes.json").write_text(json.dumps(SHAPES))
    values = np.concatenate([array.ravel() for array in arrays])
    for n, piece in enumerate(np.array_split(values, num_files)):
        np.save(folder / f"params_{n}.npy", piece)
    return arrays


def test_a_released_folder(tmp_path):
    arrays = write(tmp_path / "model")
    task, report = preset.read_task(tmp_path / "model", CausalLM)
    assert len(report.loaded) == 2 + 2 * 16 and not report.unexpected
    backbone = task.backbone
    assert (backbone.embedding_dropout, backbone.num_heads) == ("matrix", 1)
    block = backbone.blocks[1]
    for variable, wanted in (
        (backbone.embeddings.position.embeddings, arrays[0]),
        (backbone.token_embeddings, arrays[1]),
        (block.attention.key.kernel, arrays[14][0, :, W : 2 * W]),
        (block.attention.value.bias, arrays[15][2 * W :]),
        (block.attention.output_projection.kernel, arrays[16][0]),
        (block.attention_norm.gamma, arrays[18]),
        (block.feed_forward.intermediate.kernel, arrays[20][0]),
        (block.feed_forward.output_projection.bias, arrays[23]),
        (block.output_norm.beta, arrays[25]),
    ):
        np.testing.assert_array_equal(to_numpy(variable.value), wanted)


def test_what_is_written_is_what_was_read(tmp_path):
    write(tmp_path / "model")
    save_openai_gpt(CausalLM.from_preset(tmp_path / "model"), tmp_path / "again")
    for name in ("params_shapes.json", *(f"params_{n}.npy" for n in range(10))):
        one, other = (tmp_path / folder / name for folder in ("model", "again"))
        if name.endswith("json"):
            assert json.loads(one.read_text()) == json.loads(other.read_text())
        else:
            np.testing.assert_array_equal(np.load(one), np.load(other))


def test_what_their_code_cannot_compute_is_not_written(tmp_path):
    for overrides, message in (
        ({"num_heads": 2}, "head width 64.*Received: 32"),
        ({"activation": "gelu_erf"}, "activation gelu_tanh.*Received: gelu_erf"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon 1e-05.*Received: 1e-06"),
    ):
        sizes = {"num_heads": 1, **overrides}
        backbone = GPTBackbone(V, 1, hidden_dim=W, intermediate_dim=4 * W, **sizes)
        with pytest.raises(ValueError, match=message):
            save_openai_gpt(backbone, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_broken_folders_are_named(tmp_path):
    write(tmp_path / "short", num_files=11)
    with pytest.raises(ValueError, match="Expected .* values in params_.*Received"):
        preset.load_backbone(tmp_path / "short", GPTBackbone)
    file = tmp_path / "short" / "params_3.npy"
    file.write_bytes(file.read_bytes().replace(b"{", b"("))
    with pytest.raises(ValueError, match=r"Expected an array in '.*params_3.npy'"):
        preset.load_backbone(tmp_path / "short", GPTBackbone)
    file.unlink()
    with pytest.raises(ValueError, match=r"Expected an array in '.*params_3.npy'"):
        preset.load_backbone(tmp_path / "short", GPTBackbone)
    for text, message in (
        ("{", "list of shapes"),
        ("[[8, 64], [11, 64], [3]]", "Received: 3 arrays"),
    ):
        (tmp_path / "short" / "params_shapes.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            preset.load_backbone(tmp_path / "short", GPTBackbone)
