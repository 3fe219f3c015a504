import keras
import pytest


@pytest.fixture(autouse=True)
def _seeded():
    keras.utils.set_random_seed(17)
    yield
    keras.config.set_dtype_policy("float32")
