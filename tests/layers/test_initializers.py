import keras
import numpy as np

from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.initializers import fresh
from tests.layer_checks import to_numpy


def test_copies_draw_apart_where_one_instance_repeats_itself():
    original = keras.initializers.TruncatedNormal(stddev=0.02)
    first, second = (to_numpy(fresh(original)((200, 50))) for _ in range(2))
    assert not np.allclose(first, second)


def test_R5_a_seed_generator_in_an_initializer_comes_back_as_one():
    seeded = keras.initializers.GlorotUniform(keras.random.SeedGenerator(0))
    layer = FeedForward(3, kernel_initializer=seeded)
    twin = FeedForward.from_config(layer.get_config())
    assert isinstance(twin.kernel_initializer.seed, keras.random.SeedGenerator)
    for made in (layer, twin):
        made.build((None, 2))
    np.testing.assert_array_equal(*(to_numpy(made.intermediate.kernel) for made in (layer, twin)))


def test_truncated_normal_has_the_spread_of_the_published_one():
    values = to_numpy(fresh(keras.initializers.TruncatedNormal(stddev=0.02))((400, 500)))
    # A normal of deviation 0.02 cut at two deviations has deviation 0.0176.
    assert abs(values.std() - 0.0176) < 2e-4
    assert abs(values.mean()) < 2e-4
