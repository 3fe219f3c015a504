import keras
import numpy as np
import pytest

from keras_bert3.layers.feed_forward import FeedForward
from keras_bert3.layers.self_attention import SelfAttention
from keras_bert3.layers.transformer_block import TransformerBlock
from keras_bert3.training.rematerialisation import rematerialise
from tests import layer_checks
from tests.layer_checks import to_numpy

HIDDEN = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
CALLS = []


class Counted(FeedForward):
    """Notes how often it is run, or traced."""

    def call(self, hidden):
        CALLS.append(hidden)
        return super().call(hidden)


class Model(keras.Model):
    """One block with dropout."""

    def __init__(self):
        super().__init__()
        block = TransformerBlock(SelfAttention(2, dropout=0.3), Counted(16), dropout=0.3)
        block.build((None, None, 8))
        self.blocks, self.built = [block], True

    def call(self, hidden, training=None):
        return self.blocks[0](hidden, training=training)


def gradients(again):
    keras.utils.set_random_seed(0)
    model = Model()
    if again:
        assert rematerialise(model) == 1
    CALLS.clear()
    losses = [layer_checks.square_error(model(HIDDEN, training=True)) for _ in range(2)]
    found = layer_checks.gradients(
        model, lambda: layer_checks.square_error(model(HIDDEN, training=True))
    )
    states = map(to_numpy, model.non_trainable_variables)
    return [*map(to_numpy, losses), *found, *states], len(CALLS)


def test_recomputed_blocks_give_the_losses_gradients_and_random_states_of_others():
    expected, calls = gradients(False)
    found, more_calls = gradients(True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    if keras.backend.backend() == "jax":  # which marks in its program what is to run again
        assert " remat" in program(True) and " remat" not in program(False)
    else:
        assert more_calls == calls + 1


def program(again):
    import jax

    model = Model()
    if again:
        rematerialise(model)
    with keras.StatelessScope():
        return str(jax.make_jaxpr(lambda x: model(x, training=True))(HIDDEN))


def test_without_training_nothing_is_different():
    model = Model()
    before = to_numpy(model(HIDDEN))
    rematerialise(model)
    np.testing.assert_array_equal(to_numpy(model(HIDDEN)), before)


def test_a_model_without_blocks_is_refused():
    with pytest.raises(ValueError, match="of Transformer blocks. Received: mine"):
        rematerialise(keras.Sequential([keras.layers.Dense(1)], name="mine"))
