import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert3.serving.client import Client
from tests.tasks import toy

ROOT = Path(__file__).resolve().parents[2]
LABELS = ["entailment", "neutral", "contradiction"]


@contextlib.contextmanager
def served(directory, *options):
    """Run the server in a process of its own, where nothing of this one's is loaded."""
    command = [sys.executable, "-m", "keras_bert3.serving.server", str(directory), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "none"}
    process = subprocess.Popen(
        [*command, *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "the server did not start"
        client = Client(Path(directory).name, found[0], deadline=60.0)
        if "--grpc-port" in options:
            client.grpc_address = process.stdout.readline().split("grpc://")[1].strip()
        yield client, process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def classifier(labels=LABELS, **arguments):
    """A model whose outputs tell inputs apart: weights far from 0."""
    from keras_bert3.tasks.preprocessor import Preprocessor
    from keras_bert3.tasks.text_classifier import TextClassifier

    backbone = toy.backbone(num_layers=1, initializer_range=0.5, **arguments)
    return TextClassifier(backbone, preprocessor=Preprocessor(toy.tokenizer()), labels=labels)


def trained(task):
    """Train a task for two steps."""
    import keras

    task.compile(keras.optimizers.SGD(0.1), run_eagerly=keras.backend.backend() == "tensorflow")
    before = keras.ops.convert_to_numpy(task.trainable_weights[-1])
    for step in range(2):
        task.train_on_batch(with_mask(tokens(4, 12, step)), np.arange(4) % 3)
    assert (before != keras.ops.convert_to_numpy(task.trainable_weights[-1])).any()
    return task


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A trained classifier of pairs, and the directory it is exported to; once for all tests."""
    pytest.importorskip("tensorflow", exc_type=ImportError)
    from keras_bert3.serving.export import export_saved_model

    task = trained(classifier())
    directory = tmp_path_factory.mktemp("served") / "mnli"
    assert export_saved_model(task, directory, pair=True) == directory.resolve() / "1"
    return task, directory


@pytest.fixture(scope="session")
def client(exported):
    options = ["--grpc-port", "0"] if importlib.util.find_spec("grpc") else []
    with served(exported[1], *options) as (found, _):
        yield found


def tokens(rows, length, seed=0):
    """Token ids as the signature `tokens` takes them."""
    rng = np.random.default_rng(seed)
    size = toy.tokenizer().vocabulary_size
    shape = (rows, length)
    return {
        "token_ids": rng.integers(0, size, shape).astype("int32"),
        "segment_ids": np.sort(rng.integers(0, 2, shape), 1).astype("int32"),
        "lengths": rng.integers(1, length + 1, rows).astype("int32"),
    }


def with_mask(inputs):
    """The same rows as a task takes them."""
    mask = np.arange(inputs["token_ids"].shape[1]) < inputs["lengths"][:, None]
    return {**{n: v for n, v in inputs.items() if n != "lengths"}, "padding_mask": mask}
