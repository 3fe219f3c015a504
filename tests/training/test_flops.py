import keras
import pytest

from keras_bert3.training import flops
from tests.tasks import toy


def test_operations_of_a_token_are_those_of_its_matrices():
    task = toy.masked_lm()
    width, inner, vocabulary = 16, 32, toy.tokenizer().vocabulary_size
    block = 6 * (4 * width * width + 2 * width * inner) + 12 * 10 * width
    assert flops.flops_per_token(task, 10) == block + 6 * vocabulary * width
    assert flops.flops_per_token(task, 10, 0.0) == block
    assert flops.flops_per_token(keras.Sequential(), 10) == 0


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("TPU v5 lite", 197e12),
        ("Tesla T4", 65e12),
        ("cpu", None),
    ],
)
def test_a_device_is_known_by_a_part_of_its_name(name, peak):
    assert flops.peak_of(name) == peak


def test_this_device_has_a_name():
    assert flops.device_name() and flops.device_count() == 1
