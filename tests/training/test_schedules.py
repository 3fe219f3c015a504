import math

import keras
import numpy as np
import pytest

from keras_bert3.training.schedules import (
    WarmupCosineDecay,
    WarmupLinearDecay,
    WarmupTimesLinearDecay,
)

ALL = (WarmupLinearDecay, WarmupCosineDecay, WarmupTimesLinearDecay)


def rates(schedule, *steps):
    return [float(schedule(step)) for step in steps]


def test_bert_warms_up_from_zero_and_decays_as_counted_from_step_zero():
    schedule = WarmupLinearDecay(1e-4, 100, 1000)
    # The jump at the end of warm-up is the published one: 1e-4 (1 - 100 / 1000).
    expected = [0, 0.5e-4, 0.99e-4, 0.9e-4, 0.45e-4, 0, 0]
    np.testing.assert_allclose(
        rates(schedule, 0, 50, 99, 100, 550, 1000, 1200), expected, atol=1e-10
    )


def test_gpt_warms_up_and_follows_half_a_cosine():
    schedule = WarmupCosineDecay(2.5e-4, 100, 1000)
    dropped = 1.25e-4 * (1 + math.cos(math.pi * 0.101))
    expected = [0, 1.25e-4, 2.5e-4, dropped, 1.25e-4, 0, 0]
    np.testing.assert_allclose(
        rates(schedule, 0, 50, 100, 101, 500, 1000, 1200), expected, atol=1e-9
    )


def test_gpt_fine_tuning_decays_while_it_warms_up():
    schedule = WarmupTimesLinearDecay(1.0, 100, 1000)
    expected = [0, 0.5 * 0.95, 0.9, 0.5, 0, 0]
    np.testing.assert_allclose(rates(schedule, 0, 50, 100, 500, 1000, 1200), expected, atol=1e-6)


@pytest.mark.parametrize("schedule_class", ALL)
def test_without_warm_up_the_first_rate_is_the_peak(schedule_class):
    assert float(schedule_class(0.5, 0, 10)(0)) == 0.5


@pytest.mark.parametrize("schedule_class", ALL)
def test_serialisation(schedule_class):
    schedule = schedule_class(1e-4, 100, 1000)
    twin = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert type(twin) is schedule_class and twin.get_config() == schedule.get_config()


@pytest.mark.parametrize("schedule_class", ALL)
def test_warm_up_longer_than_the_run_is_refused(schedule_class):
    with pytest.raises(ValueError, match="warmup_steps=20, total_steps=10"):
        schedule_class(1e-4, 20, 10)
