"""Carry values along a table of rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import keras
import numpy as np

from keras_bert3.checkpoints.mapping import Rule
from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import assign
from keras_bert3.training import padding


def load(
    rules: Sequence[Rule],
    names: Mapping[str, str],
    read: Callable[[str], np.ndarray],
    variables: Mapping[str, keras.Variable],
    source: str,
) -> LoadReport:
    """Fill variables from the tensors of a checkpoint.

    Rules none of whose variables exist, or none of whose tensors, do nothing. A blank variable
    takes its value later, see `blank`, so that `read` should give views of a mapped file.

    Args:
        rules: the format's table.
        names: tensors of the checkpoint: from the name in the rules to the name in the file.
        read: from the name in the file to the values.
        variables: what to fill, by path.
        source: where the tensors are, for errors.

    Returns:
        What was loaded, what has no value, and what nobody asked for.

    Raises:
        ValueError: if not a single variable finds a tensor, if a tensor has another shape than
            its variable, or if copies of one tensor differ.
    """
    loaded, used = [], set()
    for rule in rules:
        found = [name for name in rule.theirs if name in names]
        if not set(rule.ours) <= set(variables) or not _enough(rule, found):
            continue
        used.update(found)
        arrays = [read(names[name]) for name in found]
        if rule.any_of_theirs:
            _check_copies(found, arrays, source)
        for path, value in zip(rule.ours, _loaded(rule, found, arrays, source), strict=True):
            assign(variables[path], value, path, f"`{', '.join(found)}` in {source}")
            loaded.append(path)
    if not loaded:
        raise ValueError(
            f"Expected tensors of this model in {source}. Received: none that match among "
            f"{len(names)}, such as {', '.join(sorted(names.values())[:5]) or 'nothing at all'}"
        )
    return LoadReport(
        loaded=tuple(loaded),
        newly_initialised=tuple(path for path in variables if path not in set(loaded)),
        unexpected=tuple(sorted(name for key, name in names.items() if key not in used)),
    )


def _enough(rule: Rule, found: list[str]) -> bool:
    return bool(found) if rule.any_of_theirs else len(found) == len(rule.theirs)


def _check_copies(names: list[str], arrays: list[np.ndarray], source: str) -> None:
    """Refuse tensors that should be one and the same but are not."""
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if array.shape != arrays[0].shape or not np.array_equal(array, arrays[0]):
            raise ValueError(
                f"Expected `{names[0]}` and `{name}` in {source} to be the same tensor. "
                f"Received: different values"
            )


def _loaded(rule: Rule, found, arrays, source) -> list[np.ndarray]:
    """Apply a rule; a tensor it cannot be applied to is a wrong shape."""
    try:
        return rule.load(arrays)
    except ValueError as error:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            f"Expected a shape of `{', '.join(found)}` in {source} that divides into "
            f"`{', '.join(rule.ours)}`. Received: {shapes}"
        ) from error


def save(
    rules: Sequence[Rule], variables: Mapping[str, keras.Variable]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the tensors of a checkpoint, `(name, values)`.

    Rules none of whose variables exist do nothing.

    Raises:
        ValueError: if a variable has no rule, since it would be lost.
    """
    written = {path for rule in rules for path in rule.ours}
    lost = [path for path in variables if path not in written]
    if lost:
        raise ValueError(
            f"Expected variables that the format has a place for. Received: {', '.join(lost)}"
        )
    for rule in rules:
        if set(rule.ours) <= set(variables):
            ours = [variables[path] for path in rule.ours]
            arrays = [padding.cut(v, keras.ops.convert_to_numpy(v.value)) for v in ours]
            names = rule.theirs[:1] if rule.any_of_theirs else rule.theirs
            yield from zip(names, rule.save(arrays), strict=True)
