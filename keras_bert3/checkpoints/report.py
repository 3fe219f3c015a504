"""What became of every tensor when a checkpoint was loaded."""

import dataclasses

_MEANING = {
    "loaded": "variables that took their value from the checkpoint",
    "newly_initialised": "variables the checkpoint has no value for",
    "unexpected": "tensors of the checkpoint that no variable asked for",
    "reshaped": "variables whose tensor had another shape",
    "ignored": "no weights: optimizer slots (the optimizer starts fresh), counters, buffers",
}


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The result of loading a checkpoint into a model, name by name.

    Variables are named by their path below the backbone (`block_0/attention/query/kernel`) or by
    the head's name and the path below it (`masked_lm_head/dense/kernel`); tensors by the
    checkpoint's own names.

    Args:
        loaded: variables that took their value from the checkpoint.
        newly_initialised: variables the checkpoint has no value for; they keep their random start.
        unexpected: tensors of the checkpoint that no variable asked for.
        reshaped: variables whose tensor had another shape, as `path: (old) -> (new)`.
        ignored: tensors that are no weights: optimizer slots, step counters, constant buffers.
    """

    loaded: tuple[str, ...] = ()
    newly_initialised: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def __add__(self, other: "LoadReport") -> "LoadReport":
        return LoadReport(*(getattr(self, name) + getattr(other, name) for name in _MEANING))


def print_report(report: LoadReport, limit: int = 10) -> None:
    """Print a report, a line for each group and the first `limit` names of all but `loaded`.

    Example:
        >>> print_report(LoadReport(loaded=("embeddings/norm/beta",), ignored=("global_step",)))
        loaded: 1 (variables that took their value from the checkpoint)
        ignored: 1 (no weights: optimizer slots (the optimizer starts fresh), counters, buffers)
          global_step
    """
    for name, meaning in _MEANING.items():
        entries = getattr(report, name)
        if not entries:
            continue
        print(f"{name}: {len(entries)} ({meaning})")
        if name == "loaded":
            continue
        for entry in entries[:limit]:
            print(f"  {entry}")
        if len(entries) > limit:
            print(f"  ... and {len(entries) - limit} more")
