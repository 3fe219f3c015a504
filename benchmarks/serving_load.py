"""Sixteen clients at once for a minute: errors, memory, and a new version in the middle of it.

    KERAS_BACKEND=jax python benchmarks/serving_load.py --seconds 60

Exports a small BERT classifier of strings, starts `keras_bert3.serving.server` in a process of its
own and lets threads ask it without a pause, texts of different lengths and characters in batches of
different sizes. Half way through a second version appears. Ends with 1 if a request failed, the
second version was not taken up, or the server's memory grew by more than 2 % after the first ten
seconds; the growth that a second version brings is counted from ten seconds after it.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from serving_tasks import serve

from keras_bert3 import BertBackbone, TextClassifier
from keras_bert3.serving.client import Client
from keras_bert3.serving.export import export_saved_model
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

WORDS = "the a cat dog sat ran on under mat tree and then slept all day long ##s ##ing".split()
SETTLED = 10.0
"""Seconds after which memory has what it needs."""


def export(directory: Path) -> None:
    """Export a classifier of strings."""
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    backbone = BertBackbone(tokenizer.vocabulary_size, 2, 4, 128, 512)
    task = TextClassifier(backbone, preprocessor=Preprocessor(tokenizer, 128), labels=["a", "b"])
    export_saved_model(task, directory)


def memory(process: subprocess.Popen) -> float:
    """Return the resident set of a process in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Clients:
    """Threads that ask without a pause."""

    def __init__(self, url: str, count: int) -> None:
        self.url, self.stop = url, threading.Event()
        self.failures: list[Exception] = []
        self.times: list[float] = []
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(count)]

    def _ask(self, number: int) -> None:
        client = Client("load", self.url, deadline=30.0, retries=0)
        rng = np.random.default_rng(number)
        words = [*WORDS, "Ünder", "中文", "\u200b", "xyz" * 30, "!"]
        while not self.stop.is_set():
            rows, length = rng.integers(1, 9), rng.integers(0, 100)
            texts = [" ".join(rng.choice(words, length)) for _ in range(rows)]
            begin = time.perf_counter()
            try:
                found = client.predict(texts)
                assert found["probabilities"].shape == (rows, 2)
            except Exception as error:  # noqa: BLE001
                self.failures.append(error)
            self.times.append(time.perf_counter() - begin)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="before and after the version")
    parser.add_argument("--clients", type=int, default=16)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "load"
        export(directory)
        process, url = serve([directory])
        clients = Clients(url, chosen.clients)
        try:
            for thread in clients.threads:
                thread.start()
            growths = [watch(process, chosen.seconds, "version 1")]
            shutil.copytree(directory / "1", directory / "new")
            (directory / "new").rename(directory / "2")
            growths.append(watch(process, chosen.seconds, "version 2"))
            state = Client("load", url)
            is_new = state.predict(["a cat"], version=2) is not None
        finally:
            clients.stop.set()
            for thread in clients.threads:
                thread.join()
            process.kill()
            process.wait()
    times = sorted(clients.times)
    print(
        f"{len(times)} requests of {chosen.clients} clients, {len(clients.failures)} failed, "
        f"median {1000 * statistics.median(times):.0f} ms, 99th percentile "
        f"{1000 * times[int(0.99 * len(times))]:.0f} ms"
    )
    for failure in clients.failures[:3]:
        print(repr(failure))
    return int(bool(clients.failures) or not is_new or max(growths) > 0.02)


def watch(process: subprocess.Popen, seconds: float, what: str) -> float:
    """Sample memory each second; return its growth after ten, from first to last quarter."""
    samples, end = [], time.monotonic() + seconds
    begin = time.monotonic()
    while time.monotonic() < end:
        time.sleep(1.0)
        if time.monotonic() - begin >= SETTLED:
            samples.append(memory(process))
    part = max(1, len(samples) // 4)
    early, late = statistics.median(samples[:part]), statistics.median(samples[-part:])
    print(f"{what}: {early:.0f} MiB after {SETTLED:.0f} s, {late:.0f} MiB at the end", flush=True)
    return late / early - 1


if __name__ == "__main__":
    sys.exit(main())
