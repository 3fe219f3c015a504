"""TensorFlow, for those functions that make graphs; nothing else imports it."""

import importlib
from typing import Any


def tensorflow() -> Any:
    """Import TensorFlow, or say how to get it.

    Raises:
        ImportError: where it is not installed.
    """
    try:
        return importlib.import_module("tensorflow")
    except ImportError as error:
        raise ImportError(
            "Expected TensorFlow, which graphs are made with: pip install 'keras-bert3[serving]'. "
            f"Received: {error}"
        ) from error
