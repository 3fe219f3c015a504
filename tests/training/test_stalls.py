import time

from keras_bert3.training import stalls
from keras_bert3.training.stalls import StallDetector


def steps(detector, count, seconds):
    for batch in range(count):
        time.sleep(seconds)
        detector.on_train_batch_end(batch)


def test_a_run_that_stands_still_is_ended_and_a_slow_one_is_not():
    seen: list = []
    detector = StallDetector(0.1, seen.append)
    detector.on_train_begin()
    detector.on_epoch_begin(0)
    time.sleep(0.3)  # compiles
    steps(detector, 3, 0.02)
    detector.on_epoch_end(0)
    time.sleep(0.3)  # saves
    assert not seen
    detector.on_epoch_begin(1)
    steps(detector, 2, 0.02)
    time.sleep(1.2)
    assert len(seen) == 1 and seen[0] > 20 * detector.longest > 0
    detector.on_train_end()


def test_the_process_ends_and_says_where_it_stood(monkeypatch, capfd):
    codes: list = []
    monkeypatch.setattr(stalls.os, "_exit", codes.append)
    stalls._end(61)
    said = capfd.readouterr().err
    assert codes == [1] and "No step has ended for 61 seconds" in said and "test_stalls.py" in said
