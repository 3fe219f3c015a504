"""What several processes agree on is in `tests.runs.test_scaling`."""

import os
import signal
import threading

from keras_bert3.training.notice import Notice, listening


def test_a_signal_is_seen_and_the_next_one_ends_the_process():
    before = signal.getsignal(signal.SIGTERM)
    with listening() as notice:
        assert not notice.seen(1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert notice.seen(2) and notice.arrived
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is before
    assert not Notice().seen(1)


def test_beside_the_main_thread_nothing_is_listened_for():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def listen():
        with listening() as notice:
            seen.append((notice.seen(1), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
