import keras
import numpy as np
import pytest

from keras_bert3.training.layer_groups import layerwise_rates, norms_and_biases
from keras_bert3.training.optimizers import AdamW, BertAdam
from tests.layer_checks import to_numpy
from tests.tasks import toy


@pytest.fixture(scope="module")
def task():
    return toy.masked_lm(next_sentence=True, num_layers=2)


def test_W1_names_and_types_of_layers_agree_on_what_is_not_decayed(task):
    by_type = {variable.path for variable in norms_and_biases(task)}
    _, by_name = BertAdam().decay_groups(task.trainable_variables)
    assert set(by_name) == by_type and len(by_type) == len(task.trainable_variables) - 18


def test_W1_a_norm_is_known_by_its_type_whatever_its_weights_are_called():
    norm = keras.layers.RMSNormalization(name="norm")
    norm.build((None, 4))
    optimizer = BertAdam(0.1)
    optimizer.exclude_from_weight_decay(norms_and_biases(norm))
    assert optimizer.decay_groups(norm.trainable_variables) == ([], ["norm/scale"])


def test_lower_layers_learn_more_slowly(task):
    # One shape is enough; each costs a compilation on JAX.
    some = [v for v in task.trainable_variables if tuple(v.shape) == (16,)]
    optimizer = AdamW(0.1, rate_factors=layerwise_rates(task.backbone, 0.5), weight_decay=0.0)
    before = [to_numpy(v) for v in some]
    # The first step of Adam with bias correction is one rate long in each direction.
    optimizer.apply([keras.ops.ones(16)] * len(some), some)
    powers = set()
    for old, new in zip(before, some, strict=True):
        head = "head" in new.path or "pooler" in new.path
        power = 0 if head else 1 if "block_1" in new.path else 2 if "block_0" in new.path else 3
        powers.add(power)
        np.testing.assert_allclose(old - to_numpy(new), 0.1 * 0.5**power, rtol=1e-3)
    assert powers == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="Received: factor=2"):
        layerwise_rates(task.backbone, 2)
