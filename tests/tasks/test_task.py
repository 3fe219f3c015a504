import keras
import numpy as np
import pytest

from keras_bert3.tasks.masked_lm import MaskedLM
from keras_bert3.training.optimizers import BertAdam
from keras_bert3.training.schedules import WarmupLinearDecay
from tests.layer_checks import to_numpy
from tests.tasks import toy


def test_ids_outside_the_vocabulary_are_refused_before_any_step():
    task = MaskedLM(toy.backbone())
    task.compile()
    x, y, w = toy.batch()
    x["token_ids"][2, 3] = 999
    for call in (
        lambda: task.fit(x, y, sample_weight=w, verbose=0),
        lambda: task.evaluate(x, y, sample_weight=w, verbose=0),
        lambda: task.predict(x, verbose=0),
    ):
        with pytest.raises(ValueError, match=r"Received: 999 at position \(2, 3\)"):
            call()
    assert int(task.optimizer.iterations) == 0


def test_text_without_a_preprocessor_is_refused():
    with pytest.raises(ValueError, match="preprocessor=None"):
        MaskedLM(toy.backbone(), next_sentence=False).fit(toy.TEXTS, verbose=0)


def test_fit_compiles_with_the_papers_defaults():
    task = toy.masked_lm()
    task.fit(toy.TEXTS, verbose=0)
    assert task.optimizer.name == "bert_adam"


def test_defaults_can_be_replaced_one_by_one():
    task = toy.masked_lm()
    task.compile(optimizer=keras.optimizers.SGD(0.1, name="mine"))
    assert task.optimizer.name == "mine"
    assert "masked_lm_accuracy" in task.evaluate(toy.TEXTS, verbose=0, return_dict=True)


def test_validation_on_texts():
    task = toy.masked_lm()
    history = task.fit(toy.TEXTS, validation_data=(toy.TEXTS[:4],), epochs=2, verbose=0).history
    assert len(history["val_loss"]) == 2


def test_keras_files_give_the_same_model_back(tmp_path):
    task = trained_by_a_generator(optimizer=BertAdam(WarmupLinearDecay(0.1, 1, 9)))
    task.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    x, _, _ = toy.batch()
    for name, value in task(x).items():
        np.testing.assert_allclose(to_numpy(twin(x)[name]), to_numpy(value), atol=1e-6)
    # Compiled as before, and the optimiser goes on.
    assert twin.optimizer.get_config() == task.optimizer.get_config()
    assert sorted(twin.loss) == ["masked_lm", "next_sentence"]
    for one, other in zip(twin.optimizer.variables, task.optimizer.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


def trained_by_a_generator(**settings):
    task = MaskedLM(toy.backbone())
    task.compile(**settings)
    batches = (toy.batch(seed=i) for i in range(10))
    task.fit(batches, steps_per_epoch=2, verbose=0)  # and no warning
    assert int(task.optimizer.iterations) == 2
    return task
