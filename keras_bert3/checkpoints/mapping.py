"""A small vocabulary of rules between our variables and a checkpoint's tensors, both ways.

A format is a table of rules. Each rule names variables of ours and tensors of theirs, and knows how
values travel in either direction, so that one table serves loading and saving:

| rule         | ours                         | theirs                                         |
|--------------|------------------------------|------------------------------------------------|
| `rename`     | a variable                   | the same values under another name             |
| `transpose`  | a kernel `[in, out]`         | its transpose `[out, in]`                      |
| `reshape`    | an array                     | the same values in another shape               |
| `split`      | several variables            | one tensor, theirs one after another           |
| `interleave` | several variables            | one tensor, a head of each in turn             |
| `tie`        | a variable                   | the same values under any of several names     |
| `cast`       | what another rule says       | the same in another dtype                      |

`{i}` in a name stands for the number of a layer; `for_layers` writes the rules of every layer out.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import ml_dtypes
import numpy as np

Arrays = list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Rule:
    """How some variables of ours and some tensors of theirs say the same thing.

    Args:
        ours: paths of variables.
        theirs: names of tensors. Where `any_of_theirs`, the first is written, one of them is enough
            to load, and several must agree.
        load: from the values of theirs to those of ours.
        save: from the values of ours to those of theirs.
        any_of_theirs: whether the names of theirs are copies of one another.
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    load: Callable[[Arrays], Arrays]
    save: Callable[[Arrays], Arrays]
    any_of_theirs: bool = False


def rename(ours: str, theirs: str) -> Rule:
    """The same values under another name."""
    return Rule((ours,), (theirs,), list, list)


def transpose(ours: str, theirs: str) -> Rule:
    """A matrix and its transpose: `[in, out]` here, `[out, in]` there."""
    return Rule((ours,), (theirs,), _each_transposed, _each_transposed)


def reshape(ours: str, theirs: str, shape: Sequence[int], their_shape: Sequence[int]) -> Rule:
    """The same values in another shape, such as `[w, h d]` here and `[w, h, d]` there.

    Args:
        ours: the variable.
        theirs: the tensor.
        shape: of ours; one entry may be -1.
        their_shape: of theirs; one entry may be -1.
    """
    return Rule(
        (ours,),
        (theirs,),
        lambda arrays: [arrays[0].reshape(shape)],
        lambda arrays: [arrays[0].reshape(their_shape)],
    )


def split(ours: Sequence[str], theirs: str, axis: int = -1, transposed: bool = False) -> Rule:
    """Several variables of one shape, theirs joined along `axis`.

    Args:
        ours: the variables, in their order along the axis.
        theirs: the joined tensor.
        axis: of our arrays, along which they are joined.
        transposed: whether theirs is the transpose of our arrays joined.
    """

    def load(arrays: Arrays) -> Arrays:
        joined = arrays[0].T if transposed else arrays[0]
        return np.split(joined, len(ours), axis=axis)

    def save(arrays: Arrays) -> Arrays:
        joined = np.concatenate(arrays, axis=axis)
        return [joined.T if transposed else joined]

    return Rule(tuple(ours), (theirs,), load, save)


def interleave(ours: Sequence[str], theirs: str, num_heads: int, transposed: bool = False) -> Rule:
    """Several variables of one shape, theirs joined head by head along the last axis.

    With heads h of width d, column (h, n, d) of theirs is column (h, d) of our n-th variable, as in
    the `in_proj` of DeBERTa v1 (microsoft/DeBERTa `disentangled_attention.py`).

    Args:
        ours: the variables, in their order within a head.
        theirs: the joined tensor.
        num_heads: number of heads h.
        transposed: whether theirs is the transpose of our arrays joined.
    """
    count = len(ours)

    def load(arrays: Arrays) -> Arrays:
        joined = arrays[0].T if transposed else arrays[0]
        *leading, width = joined.shape
        heads = joined.reshape(*leading, num_heads, count, width // (num_heads * count))
        return [heads[..., n, :].reshape(*leading, width // count) for n in range(count)]

    def save(arrays: Arrays) -> Arrays:
        *leading, width = arrays[0].shape
        heads = [array.reshape(*leading, num_heads, width // num_heads) for array in arrays]
        joined = np.stack(heads, axis=-2).reshape(*leading, count * width)
        return [joined.T if transposed else joined]

    return Rule(tuple(ours), (theirs,), load, save)


def tie(ours: str, *theirs: str) -> Rule:
    """A variable that stands under one or more of several names in theirs, the first when saved."""
    return Rule((ours,), theirs, lambda arrays: arrays[:1], list, any_of_theirs=True)


def cast(rule: Rule, dtype: str) -> Rule:
    """The same rule with theirs in another dtype; loading casts to the variable's dtype anyway.

    Saving raises ValueError for a finite value that is not finite in this dtype, and names it.
    """

    def save(arrays: Arrays) -> Arrays:
        values = zip(rule.theirs, rule.save(arrays), strict=False)  # a tie saves its first alone
        return [_narrowed(value, dtype, name) for name, value in values]

    return dataclasses.replace(rule, save=save)


def _narrowed(array: np.ndarray, dtype: str, name: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype)
    is_infinite = np.isinf(narrow)
    if is_infinite.any() and np.isfinite(array[is_infinite]).any():
        largest = np.abs(array[np.isfinite(array)]).max()
        raise ValueError(
            f"Expected weights that {dtype} can hold, of at most {ml_dtypes.finfo(dtype).max}. "
            f"Received: `{name}`, whose largest value is {largest}"
        )
    return narrow


def for_layers(rules: Iterable[Rule], num_layers: int) -> list[Rule]:
    """Write rules with `{i}` in their names out for layers 0 to `num_layers` - 1."""
    rules = list(rules)
    return [
        dataclasses.replace(
            rule,
            ours=tuple(name.replace("{i}", str(i)) for name in rule.ours),
            theirs=tuple(name.replace("{i}", str(i)) for name in rule.theirs),
        )
        for i in range(num_layers)
        for rule in rules
    ]


def dense(ours: str, theirs: str) -> list[Rule]:
    """A `Dense` layer and a PyTorch `Linear`."""
    return [
        transpose(f"{ours}/kernel", f"{theirs}.weight"),
        rename(f"{ours}/bias", f"{theirs}.bias"),
    ]


def norm(ours: str, theirs: str) -> list[Rule]:
    """A `LayerNormalization` here and in PyTorch."""
    return [
        rename(f"{ours}/gamma", f"{theirs}.weight"),
        rename(f"{ours}/beta", f"{theirs}.bias"),
    ]


def _each_transposed(arrays: Arrays) -> Arrays:
    return [array.T for array in arrays]
