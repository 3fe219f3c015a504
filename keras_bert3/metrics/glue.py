"""The metrics of GLUE and SuperGLUE (Wang et al. 2018, table 1), by scikit-learn and scipy."""

import importlib
from collections.abc import Sequence
from typing import Any


def accuracy(gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
    """Share of right predictions.

    Example: `accuracy([0, 1], [0, 0])` is `{"accuracy": 0.5}`.
    """
    _check(gold, predicted)
    return {"accuracy": float(_sklearn().accuracy_score(gold, predicted))}


def accuracy_and_f1(gold: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """Accuracy and F1 of class 1 (MRPC, QQP)."""
    score = _sklearn().f1_score(gold, predicted, pos_label=1, zero_division=0.0)
    return {**accuracy(gold, predicted), "f1": float(score)}


def matthews(gold: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """Matthews correlation coefficient (CoLA, AX); 0 where all predictions are alike."""
    _check(gold, predicted)
    return {"matthews": float(_sklearn().matthews_corrcoef(gold, predicted))}


def pearson_and_spearman(gold: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Linear and rank correlation (STS-B), and their mean.

    All three are 0 where all predictions are alike, for which they are not defined.
    """
    _check(gold, predicted)
    stats = _module("scipy.stats")
    if min(predicted) == max(predicted) or min(gold) == max(gold):
        return {"pearson": 0.0, "spearman": 0.0, "mean": 0.0}
    pearson = float(stats.pearsonr(gold, predicted)[0])
    spearman = float(stats.spearmanr(gold, predicted)[0])
    return {"pearson": pearson, "spearman": spearman, "mean": (pearson + spearman) / 2}


METRICS = {
    "accuracy": accuracy,
    "accuracy_and_f1": accuracy_and_f1,
    "matthews": matthews,
    "pearson_and_spearman": pearson_and_spearman,
}
"""By name, as benchmarks give them."""


def _check(gold, predicted) -> None:
    if len(gold) != len(predicted) or not len(gold):
        raise ValueError(
            "Expected as many predictions as labels, and at least one. "
            f"Received: {len(predicted)} predictions for {len(gold)} labels"
        )


def _sklearn():
    return _module("sklearn.metrics")


def _module(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"GLUE's metrics need {name.split('.')[0]}; install keras-bert3[metrics]"
        ) from error
