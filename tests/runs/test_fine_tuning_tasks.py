import numpy as np
import pytest

from keras_bert3.benchmarks.hub import find
from keras_bert3.runs import fine_tuning_tasks as tasks


@pytest.mark.parametrize(
    ("benchmark", "family", "expected"),
    [
        ("cola", "bert", "TextClassifier"),
        ("cola", "gpt", "GPTTextClassifier"),
        ("mrpc", "deberta", "TextClassifier"),
        ("mrpc", "gpt", "GPTSimilarity"),
        ("swag", "bert", "MultipleChoice"),
        ("swag", "gpt", "GPTMultipleChoice"),
        ("conll2003", "bert", "TokenClassifier"),
        ("squad2", "deberta", "ExtractiveQA"),
    ],
)
def test_each_benchmark_has_its_task(benchmark, family, expected):
    assert tasks.task_class_of(find(benchmark), family).__name__ == expected


def test_what_needs_a_first_token_is_not_for_gpt():
    with pytest.raises(ValueError, match="choices for GPT-1. Received: SQuAD"):
        tasks.task_class_of(find("squad2"), "gpt")


def test_scores_are_read_as_classes_numbers_or_choices():
    scores = np.array([[0.5, 2.0], [3.0, 1.0]])
    assert tasks.answers(find("mrpc"), scores).values == ["equivalent", "not_equivalent"]
    assert tasks.answers(find("swag"), scores).values == [1, 0]
    assert tasks.answers(find("stsb"), scores[:, :1]).values == [0.5, 3.0]


def test_the_papers_metric_chooses_the_best_run():
    assert tasks.main_metric({"loss": 1, "accuracy": 1, "f1": 1}) == "f1"
    assert tasks.main_metric({"accuracy": 1, "matthews": 1}) == "matthews"
