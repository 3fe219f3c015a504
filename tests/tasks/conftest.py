import keras
import pytest


@pytest.fixture(autouse=True)
def _eager(request, monkeypatch):
    """TensorFlow traces a toy for seconds that it steps through in milliseconds.

    Each kind of task has one test, marked `graph`, that trains as users do; so do recipes and runs.
    """
    if keras.backend.backend() == "tensorflow" and "graph" not in request.keywords:
        eager = property(lambda model: True, lambda model, value: None)
        monkeypatch.setattr(keras.Model, "run_eagerly", eager)
