"""Stands before the real tensorflow-text on the path, and is not there."""

raise ModuleNotFoundError("No module named 'tensorflow_text'", name="tensorflow_text")
