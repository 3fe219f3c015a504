import threading

import pytest

from tests.serving.conftest import tokens

pytest.importorskip("tensorflow", exc_type=ImportError)

from keras_bert3.serving.session import SavedModelSession


@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_runs_go_on_than_there_are_threads(exported, monkeypatch, threads):
    session = SavedModelSession(exported[1] / "1", threads)
    run, going, most = session._run, threading.Semaphore(threads), []

    def watched(*arguments):
        most.append(going.acquire(blocking=False))
        try:
            return run(*arguments)
        finally:
            going.release()

    monkeypatch.setattr(session, "_run", watched)
    together = threading.Barrier(8)

    def ask():
        together.wait()
        for _ in range(5):
            session.run("tokens", tokens(2, 8))

    clients = [threading.Thread(target=ask) for _ in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    session.close()
    assert most == [True] * 40
