"""Stands before the real TensorFlow on the path, and is not there."""

raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")
