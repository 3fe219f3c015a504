import numpy as np
import pytest

from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.text_classifier import TextClassifier
from keras_bert3.training.low_rank import enable_lora
from tests.layer_checks import to_numpy
from tests.tasks import toy


@pytest.fixture(scope="module")
def trained():
    task = TextClassifier(toy.backbone(), 2, Preprocessor(toy.tokenizer(), 16))
    before = {v.path: to_numpy(v) for v in task.backbone.weights}
    inputs = task.preprocess(toy.TEXTS[:4])
    plain = to_numpy(task(inputs))
    enable_lora(task.backbone, rank=2, alpha=4)
    np.testing.assert_array_equal(to_numpy(task(inputs)), plain)  # B is zero
    task.fit(toy.TEXTS, [0, 1] * 6, verbose=0)
    return task, before, inputs


def test_only_the_small_matrices_and_the_head_are_trained(trained):
    task, before, _ = trained
    names = sorted(variable.path.split("/", 1)[1] for variable in task.trainable_variables)
    small = [
        f"block_0/attention/{name}/lora_kernel_{letter}"
        for name in ("query", "value")
        for letter in "ab"
    ]
    assert [name for name in names if "lora" in name] == small
    assert len(names) == len(small) + len(task.classifier.weights)
    for variable in task.backbone.weights:
        if variable.path in before:
            np.testing.assert_array_equal(to_numpy(variable), before[variable.path])
    assert np.abs(to_numpy(task.backbone.blocks[0].attention.value.lora_kernel_b)).max() > 0


def test_a_kernel_is_changed_by_the_product(trained):
    query = trained[0].backbone.blocks[0].attention.query
    change = to_numpy(query.lora_kernel_a) @ to_numpy(query.lora_kernel_b) * (4 / 2)
    np.testing.assert_allclose(to_numpy(query.kernel), to_numpy(query._kernel) + change, atol=1e-6)


def test_a_preset_holds_the_sum(trained, tmp_path):
    task, _, inputs = trained
    task.save_to_preset(tmp_path / "preset")
    twin = TextClassifier.from_preset(tmp_path / "preset")
    assert not any("lora" in variable.path for variable in twin.weights)
    np.testing.assert_allclose(to_numpy(twin(inputs)), to_numpy(task(inputs)), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"rank": 0}, "rank of at least 1. Received: 0"), ({"rank": 1, "names": ["q"]}, "'query'.*q")],
)
def test_what_cannot_work_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        enable_lora(toy.backbone(), **arguments)
