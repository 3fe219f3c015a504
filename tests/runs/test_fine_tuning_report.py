"""Whole reports are in `tests.recipes.test_finetune`."""

from keras_bert3.runs.fine_tuning_report import markdown, summarize

ROWS = [
    {"learning_rate": rate, "seed": seed, "epoch": 1, "loss": 0.1, "f1": f1, "accuracy": 0.5}
    for rate, seed, f1 in ((3e-5, 1, 0.5), (3e-5, 2, 0.75), (3e-5, 3, 0.7), (5e-5, 1, 0.6))
]


def test_a_learning_rate_has_a_median_and_a_spread_over_seeds():
    first, second = summarize(ROWS, "f1")
    assert (first["runs"], first["median"], first["lowest"], first["highest"]) == (
        3,
        0.7,
        0.5,
        0.75,
    )
    # 0.65 is the mean; (0.15^2 + 0.1^2 + 0.05^2) / 2 = 0.0175
    assert abs(first["deviation"] - 0.0175**0.5) < 1e-12
    assert second["runs"] == 1 and second["deviation"] is None


def test_the_table_shows_each_rate_and_the_scores_of_the_best_run():
    lines = markdown(ROWS, "f1").splitlines()
    assert lines[2] == "| 3e-05 | 3 | 0.7000 | 0.5000 | 0.7500 | 0.1323 |"
    assert lines[3] == "| 5e-05 | 1 | 0.6000 | 0.6000 | 0.6000 |  |"
    assert lines[-2:] == ["| f1 | 0.7500 |", "| accuracy | 0.5000 |"]
