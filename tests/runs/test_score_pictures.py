import numpy as np
import pytest

from keras_bert3.runs.score_pictures import draw_curves

figures = pytest.importorskip("matplotlib.figure")


def test_points_close_to_guessing_are_hollow(tmp_path, monkeypatch):
    drawn, savefig = [], figures.Figure.savefig

    def noting(figure, path):
        drawn.append(figure)
        savefig(figure, path)

    monkeypatch.setattr(figures.Figure, "savefig", noting)
    curves = {"copa": [(0, 0.51, 0.02), (5, 0.55, 0.02)], "dpr": [(0, 0.45, 0.02)]}
    draw_curves(tmp_path / "a.png", curves, {"guessing": 0.5}, ("steps", "score"), guess=0.5)
    draw_curves(tmp_path / "b.svg", curves, {}, ("blocks", "accuracy"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.svg"]
    (axes,) = drawn[0].axes
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names == ["copa", "dpr", "guessing"] and axes.get_xlabel() == "steps"
    white = [np.all(points.get_facecolors() == 1, axis=-1).tolist() for points in axes.collections]
    assert white == [[True, False], [False]]
    bars = drawn[1].axes[0].containers[0][2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], [[0.49, 0.53], [0.53, 0.57]])
