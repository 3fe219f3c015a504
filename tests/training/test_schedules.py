import keras
import numpy as np
import pytest

from keras_bert3.training.schedules import WarmupLinearDecay


def test_warms_up_from_zero_and_decays_as_counted_from_step_zero():
    schedule = WarmupLinearDecay(1e-4, 100, 1000)
    rates = [float(schedule(step)) for step in (0, 50, 99, 100, 550, 1000, 1200)]
    # The jump at the end of warm-up is the published one: 1e-4 (1 - 100 / 1000).
    expected = [0, 0.5e-4, 0.99e-4, 0.9e-4, 0.45e-4, 0, 0]
    np.testing.assert_allclose(rates, expected, atol=1e-10)


def test_without_warm_up_the_first_rate_is_the_peak():
    assert float(WarmupLinearDecay(0.5, 0, 10)(0)) == 0.5


def test_serialisation():
    schedule = WarmupLinearDecay(1e-4, 100, 1000)
    twin = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert twin.get_config() == schedule.get_config()


def test_warm_up_longer_than_the_run_is_refused():
    with pytest.raises(ValueError, match="warmup_steps=20, total_steps=10"):
        WarmupLinearDecay(1e-4, 20, 10)
