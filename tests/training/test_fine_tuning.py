import keras
import numpy as np

from keras_bert3 import BertBackbone, GPTBackbone
from keras_bert3.training.fine_tuning import FineTuning
from keras_bert3.training.optimizers import BertAdam, GPTAdam


def test_the_rate_warms_up_and_falls_to_zero_where_the_updates_are_known():
    optimizer = FineTuning(BertAdam, 3e-5, 0.1).make(100)
    rates = [float(optimizer._learning_rate(step)) for step in (0, 5, 10, 55, 100)]
    np.testing.assert_allclose(rates, [0, 1.5e-5, 2.7e-5, 1.35e-5, 0], atol=1e-10)


def test_the_rate_is_constant_where_they_are_not():
    optimizer = FineTuning(BertAdam, 3e-5, 0.1).make()
    assert isinstance(optimizer, keras.optimizers.Optimizer)
    np.testing.assert_allclose(float(optimizer.learning_rate), 3e-5, rtol=1e-6)


def test_each_paper_has_its_own():
    assert BertBackbone.fine_tuning.optimizer is BertAdam
    assert GPTBackbone.fine_tuning == FineTuning(GPTAdam, 6.25e-5, 0.002)
