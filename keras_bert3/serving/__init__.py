"""Trained tasks as SavedModels that TensorFlow Serving loads, and what stands around them.

`export` writes them, on any backend; `session` and `server` run them through TensorFlow's C
library, as the server does; `client` asks either. TensorFlow is imported by what makes a graph,
never here.
"""
