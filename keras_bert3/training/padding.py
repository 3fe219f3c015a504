"""Tables with rows to spare, which devices cut by tokens whatever the number of tokens.

30,522 tokens over 4 devices make no whole number of rows each, so the table in memory has 30,592,
a multiple of 128. Rows past the last token are zero, and stay it: no id asks for them, heads leave
out their logits, and so no gradient reaches them. A variable of such a table says by `used_rows`
how many of its rows are tokens; whatever leaves the memory has those alone.
"""

import math

import numpy as np

_MULTIPLE = 128


def rows_for(rows: int, cut: int) -> int:
    """How many rows a table has in memory that `cut` devices divide.

    Example: `rows_for(30522, 2)` is 30522, `rows_for(30522, 4)` is 30592.
    """
    multiple = math.lcm(_MULTIPLE, cut)
    return rows if rows % cut == 0 else -(-rows // multiple) * multiple


def shape_of(variable) -> tuple[int, ...]:
    """The shape of a variable without rows to spare."""
    rows = getattr(variable, "used_rows", None)
    return tuple(variable.shape) if rows is None else (rows, *variable.shape[1:])


def cut(variable, value: np.ndarray) -> np.ndarray:
    """A variable's value without rows to spare."""
    rows = getattr(variable, "used_rows", None)
    return value if rows is None else value[:rows]


def filled(variable, value: np.ndarray) -> np.ndarray:
    """A value with the rows to spare that its variable has; as it is, if it has another shape."""
    if value.shape != shape_of(variable) or value.shape == tuple(variable.shape):
        return value
    return np.pad(value, [(0, variable.shape[0] - len(value))] + [(0, 0)] * (value.ndim - 1))


def mark(variables, others) -> None:
    """Tell the variables that an optimiser has for each of a model's how many rows are used."""
    for variable in variables:
        if hasattr(variable, "used_rows"):
            name = variable.path.replace("/", "_")
            for other in others:
                if name in other.path and tuple(other.shape) == tuple(variable.shape):
                    other.used_rows = variable.used_rows
