"""Models whose weights are not drawn at random only to be overwritten."""

from collections.abc import Callable, Iterable

import keras

from keras_bert3.checkpoints.variables import variables_by_path


def construct_blank(construct: Callable) -> tuple:
    """Construct a backbone with zeros for weights, and keep what would draw them.

    Drawing the weights of BERT base from truncated normals takes longer than reading them from a
    disk. Inside a `keras.StatelessScope` Keras puts the drawing off until the scope ends; each
    weight's initialiser is replaced before that.

    Args:
        construct: a function without arguments that returns a backbone, built.

    Returns:
        The backbone, and a function that draws the weights at given paths after all; it ignores
        paths that are not the backbone's.
    """
    with keras.StatelessScope():
        backbone = construct()
        weights = variables_by_path(backbone)
        # Where a version of Keras keeps no initialiser here, weights are drawn: slower, the same.
        drawn_by = {path: getattr(weight, "_initializer", None) for path, weight in weights.items()}
        for path, weight in weights.items():
            if drawn_by[path] is not None:
                weight._initializer = keras.initializers.Zeros()

    def draw(paths: Iterable[str]) -> None:
        for path in paths:
            initializer = drawn_by.get(path)
            if initializer is not None:
                weights[path].assign(initializer(weights[path].shape, dtype=weights[path].dtype))

    return backbone, draw
