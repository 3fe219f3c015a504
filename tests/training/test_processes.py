import keras
import pytest

from keras_bert3.training.processes import ALONE, join, parse


def test_a_process_that_nothing_is_said_of_is_alone(monkeypatch):
    for name in ("KERAS_DISTRIBUTION_NUM_PROCESSES", "WORLD_SIZE", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert join() == ALONE and ALONE.is_first and ALONE.number == 1


def test_processes_are_read():
    assert parse("10.0.0.1:1234,2,0") == ("10.0.0.1:1234", 2, 0)


@pytest.mark.parametrize("text", ["", "10.0.0.1,2,0", "a:1,2", "a:1,2,2", "a:1,x,0"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="as host:port,number,index"):
        parse(text)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="a flag of JAX")
def test_the_flag_names_one_process():
    assert join("127.0.0.1:1,1,0") == ALONE
