"""Curves of scores, with what guessing gives."""

from collections.abc import Mapping, Sequence
from pathlib import Path

Point = tuple[float, float, float]
"""x, y, and the standard error of y (0: none is drawn)."""


def draw_curves(
    path: str | Path,
    curves: Mapping[str, Sequence[Point]],
    levels: Mapping[str, float],
    names: tuple[str, str],
    logarithmic: bool = False,
) -> None:
    """Draw curves and horizontal lines into a file; its ending chooses the format.

    Args:
        path: the file.
        curves: points by the name of the curve.
        levels: heights of dashed lines by their names.
        names: of the two axes.
        logarithmic: whether x counts in powers of ten, 0 beside the first.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        x, y, error = zip(*points, strict=True)
        bars = error if any(error) else None
        axes.errorbar(x, y, yerr=bars, marker="o", markersize=4, capsize=2, label=name)
    for i, (name, height) in enumerate(levels.items()):
        axes.axhline(height, linestyle="--", color=f"C{len(curves) + i}", label=name)
    if logarithmic:
        positive = [x for points in curves.values() for x, _, _ in points if x > 0]
        axes.set_xscale("symlog", linthresh=min(positive, default=1))
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.legend(fontsize="small")
    partial = Path(path).with_name(f"partial-{Path(path).name}")
    figure.savefig(partial)
    partial.replace(path)
