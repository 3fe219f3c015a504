"""Initialisers that draw anew for every weight."""

import keras


def fresh(initializer) -> keras.initializers.Initializer:
    """Return a copy of `initializer` with random state of its own.

    One unseeded Keras initialiser instance draws the same values each time it is called; a layer
    that hands its initialiser to several weights gives each a copy instead.

    Args:
        initializer: A Keras initialiser, or its name or configuration.
    """
    return keras.initializers.get(initializer).clone()
