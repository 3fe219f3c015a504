import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert3.checkpoints.tensor_files import open_tensors

FILE = "model.safetensors"


def test_values_of_every_dtype_are_read(tmp_path):
    values = np.arange(6).reshape(2, 3)
    dtypes = ["float64", "float32", "float16", ml_dtypes.bfloat16, "int64", "int32", "uint8"]
    save_file({str(i): values.astype(dtype) for i, dtype in enumerate(dtypes)}, tmp_path / FILE)
    tensors = open_tensors(tmp_path)
    for i, dtype in enumerate(dtypes):
        read = tensors.read(str(i))
        np.testing.assert_array_equal(read, values)
        half = np.dtype(dtype).itemsize == 2
        assert read.dtype == (np.float32 if half else dtype), "half precision is upcast"


def test_what_is_written_to_a_tensor_never_reaches_the_file(tmp_path):
    save_file({"x": np.ones(4, "float32")}, tmp_path / FILE)
    before = (tmp_path / FILE).read_bytes()
    open_tensors(tmp_path).read("x")[:] = 7
    assert (tmp_path / FILE).read_bytes() == before
    np.testing.assert_array_equal(open_tensors(tmp_path).read("x"), 1)


def test_an_empty_tensor_and_a_scalar(tmp_path):
    save_file({"e": np.zeros((0, 3), "float32"), "s": np.full((), 2, "float32")}, tmp_path / FILE)
    tensors = open_tensors(tmp_path)
    assert tensors.read("e").shape == (0, 3) and tensors.read("s") == 2.0


@pytest.mark.parametrize("keep", [0, 4, 40, -1])
def test_a_cut_file_is_named(tmp_path, keep):
    save_file({"x": np.ones(4, "float32")}, tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:keep])
    with pytest.raises(ValueError, match=f"Expected a whole safetensors file at .*{FILE}"):
        open_tensors(tmp_path)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"x": "../other.safetensors"}, "Expected files beside"),
        ({"x": "absent.safetensors"}, "absent.safetensors.*no such file"),
        ({"y": "one.safetensors"}, "Expected `y` in .*one.safetensors"),
        ({}, "Expected a `weight_map`"),
    ],
)
def test_C6_an_index_that_is_wrong_is_refused(tmp_path, weight_map, message):
    save_file({"x": np.ones(4, "float32")}, tmp_path / "one.safetensors")
    (tmp_path / f"{FILE}.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ValueError, match=message):
        open_tensors(tmp_path)
