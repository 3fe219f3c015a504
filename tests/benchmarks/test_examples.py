import pytest

from keras_bert3.benchmarks.examples import Examples


def test_inputs_are_what_tasks_take():
    assert Examples((["a", "b"],), None, ["0", "1"]).inputs == ["a", "b"]
    pair = Examples((["a"], ["b"]), ["yes"], ["0"])
    assert pair.inputs == (["a"], ["b"]) and len(pair) == 1 and pair.known_labels() == ["yes"]


def test_the_first_examples():
    examples = Examples((["a", "b"], ["c", "d"]), [0, 1], ["x", "y"])
    assert examples.first(1) == Examples((["a"], ["c"]), [0], ["x"])
    assert Examples((["a"],), None, ["x"]).first(1).labels is None


def test_hidden_labels_are_an_error():
    with pytest.raises(ValueError, match="Received: 1 examples with no labels"):
        Examples((["a"],), None, ["x"]).known_labels()
