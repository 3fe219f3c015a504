"""Curves of scores, with what guessing gives."""

from collections.abc import Mapping, Sequence
from pathlib import Path

Point = tuple[float, float, float]
"""x, y, and the standard error of y."""


def draw_curves(
    path: str | Path,
    curves: Mapping[str, Sequence[Point]],
    levels: Mapping[str, float],
    names: tuple[str, str],
    guess: float | None = None,
) -> None:
    """Draw curves and horizontal lines into a file; its ending chooses the format.

    Args:
        path: the file.
        curves: points by the name of the curve.
        levels: heights of dashed lines by their names.
        names: of the two axes.
        guess: points within two standard errors of it are hollow; without it errors are bars.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for i, (name, points) in enumerate(curves.items()):
        x, y, error = zip(*points, strict=True)
        if guess is None:
            axes.errorbar(x, y, yerr=error, marker="o", capsize=2, label=name)
            continue
        filled = [f"C{i}" if abs(b - guess) > 2 * e else "white" for _, b, e in points]
        axes.plot(x, y, color=f"C{i}", label=name)
        axes.scatter(x, y, s=16, c=filled, edgecolors=f"C{i}", zorder=3)
    for i, (name, height) in enumerate(levels.items()):
        axes.axhline(height, linestyle="--", color=f"C{len(curves) + i}", label=name)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    figure.legend(loc="outside right upper")
    partial = Path(path).with_name(f"partial-{Path(path).name}")
    figure.savefig(partial)
    partial.replace(path)
