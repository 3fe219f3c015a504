import pytest

from keras_bert3.benchmarks.hub import BENCHMARKS
from keras_bert3.runs.fine_tuning_settings import OTHERS, PAPERS, paper_settings


def test_every_name_is_a_benchmarks():
    for settings in PAPERS.values():
        assert set(settings) - {OTHERS} <= set(BENCHMARKS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("bert", "mrpc", 768), ((5e-5, 4e-5, 3e-5, 2e-5), 32, 3, 128)),
        (("bert", "squad1", 768), ((5e-5,), 32, 3, 384)),
        (("bert", "squad2", 768), ((5e-5,), 48, 2, 384)),
        (("bert", "swag", 768), ((2e-5,), 16, 3, 128)),
        (("gpt", "rte", 768), ((6.25e-5,), 32, 3, 512)),
        (("deberta", "cola", 768), ((1.5e-5, 2e-5, 3e-5, 4e-5), 32, 6, 64)),
        (("deberta", "mnli", 768), ((1.5e-5, 2e-5, 3e-5, 4e-5), 64, 3, 256)),
        (("deberta", "conll2003", 768), ((1.5e-5, 2e-5, 3e-5, 4e-5), 16, 15, 512)),
        (("deberta", "rte", 1024), ((5e-6, 8e-6, 9e-6, 1e-5), 32, 6, 320)),
    ],
)
def test_values_of_the_papers(arguments, expected):
    assert paper_settings(*arguments) == expected
