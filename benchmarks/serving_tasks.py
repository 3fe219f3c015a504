"""A task of each kind, trained for two steps, exported and served: do the outputs stay the same?

    KERAS_BACKEND=jax python benchmarks/serving_tasks.py
    KERAS_BACKEND=torch python benchmarks/serving_tasks.py --only gpt_classifier deberta_v2

Small networks, their weights far from 0 so that outputs tell inputs apart. Each is trained by two
steps of Adam towards random outputs, exported, and served by `keras_bert3.serving.server` in a
process of its own, XLA off. The table has the largest difference between what the server answers
and what the backend that trained the task computes, at four shapes of a batch, rows of different
lengths in each; a figure above 1e-5 ends the script with 1.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np

import keras_bert3
from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.backbones.bilstm import BiLSTMBackbone
from keras_bert3.backbones.deberta import DebertaBackbone
from keras_bert3.backbones.deberta_v2 import DebertaV2Backbone
from keras_bert3.backbones.gpt import GPTBackbone
from keras_bert3.backbones.left_to_right_bert import LeftToRightBertBackbone
from keras_bert3.backbones.lstm import LSTMBackbone
from keras_bert3.serving.client import Client
from keras_bert3.serving.export import export_saved_model
from keras_bert3.serving.outputs import takes_several_rows
from keras_bert3.tasks import gpt_fine_tuning

SHAPES = ((1, 128), (3, 17), (8, 64), (2, 5))
BOUND = 1e-5
VOCABULARY = 60
SIZE = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 128,
    "initializer_range": 0.2,
}
KINDS = {
    "classifier": lambda: keras_bert3.TextClassifier(BertBackbone(**SIZE), 3),
    "regression": lambda: keras_bert3.TextClassifier(BertBackbone(**SIZE), 1),
    "embedder": lambda: keras_bert3.TextEmbedder(BertBackbone(**SIZE)),
    "masked_lm": lambda: keras_bert3.MaskedLM(BertBackbone(**SIZE)),
    "multiple_choice": lambda: keras_bert3.MultipleChoice(BertBackbone(**SIZE)),
    "token_classifier": lambda: keras_bert3.TokenClassifier(BertBackbone(**SIZE), 3),
    "extractive_qa": lambda: keras_bert3.ExtractiveQA(BertBackbone(**SIZE)),
    "left_to_right": lambda: keras_bert3.TextClassifier(LeftToRightBertBackbone(**SIZE), 3),
    "bilstm_classifier": lambda: keras_bert3.TextClassifier(
        BiLSTMBackbone(BertBackbone(**SIZE), lstm_dim=6), 3
    ),
    "bilstm_tags": lambda: keras_bert3.TokenClassifier(
        BiLSTMBackbone(BertBackbone(**SIZE), 2, layers=(-1, -2)), 3
    ),
    "deberta_classifier": lambda: keras_bert3.TextClassifier(DebertaBackbone(**SIZE, span=16), 3),
    "deberta_masked_lm": lambda: keras_bert3.MaskedLM(DebertaBackbone(**SIZE, span=16)),
    "deberta_v2": lambda: keras_bert3.TextClassifier(
        DebertaV2Backbone(**SIZE, span=16, convolution_size=3), 3
    ),
    "gpt_causal_lm": lambda: keras_bert3.CausalLM(GPTBackbone(**SIZE)),
    "gpt_classifier": lambda: gpt_fine_tuning.GPTTextClassifier(GPTBackbone(**SIZE), 3),
    "gpt_similarity": lambda: gpt_fine_tuning.GPTSimilarity(GPTBackbone(**SIZE), 1),
    "gpt_multiple_choice": lambda: gpt_fine_tuning.GPTMultipleChoice(GPTBackbone(**SIZE)),
    "lstm_causal_lm": lambda: keras_bert3.CausalLM(
        LSTMBackbone(VOCABULARY, 16, initializer_range=0.2)
    ),
}


def draw(task, rows: int, length: int, seed: int) -> dict[str, np.ndarray]:
    """Draw inputs as the signature `tokens` takes them; (b, 2, q) where an example is two rows."""
    rng = np.random.default_rng(seed)
    shape = (rows, 2, length) if takes_several_rows(task) else (rows, length)
    inputs = {
        "token_ids": rng.integers(0, VOCABULARY, shape).astype("int32"),
        "lengths": rng.integers(1, length + 1, shape[:-1]).astype("int32"),
    }
    if (task.backbone.num_segments or 0) > 1:
        inputs["segment_ids"] = np.sort(rng.integers(0, 2, shape), -1).astype("int32")
    return inputs


def as_task_inputs(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Write lengths as a padding mask."""
    columns = np.arange(inputs["token_ids"].shape[-1])
    mask = columns < inputs["lengths"][..., None]
    return {**{n: v for n, v in inputs.items() if n != "lengths"}, "padding_mask": mask}


def train(task) -> None:
    """Train two steps towards random outputs."""
    inputs = as_task_inputs(draw(task, 4, 12, 0))
    outputs = task(inputs)
    rng = np.random.default_rng(1)
    targets = keras.tree.map_structure(
        lambda value: rng.normal(size=tuple(value.shape)).astype("float32"), outputs
    )
    losses = keras.tree.map_structure(lambda value: "mse", outputs)
    task.compile(keras.optimizers.Adam(1e-3), losses, weighted_metrics=None)
    before = [keras.ops.convert_to_numpy(weight) for weight in task.trainable_weights]
    for _ in range(2):
        task.train_on_batch(inputs, targets)
    after = [keras.ops.convert_to_numpy(weight) for weight in task.trainable_weights]
    assert any((a != b).any() for a, b in zip(before, after, strict=True))


def expected_outputs(task, inputs) -> dict[str, np.ndarray]:
    """What the training backend gives, by the names of the signature's outputs."""
    outputs = keras.tree.map_structure(
        lambda value: np.asarray(keras.ops.convert_to_numpy(value), "float64"),
        task(as_task_inputs(inputs), training=False),
    )
    if isinstance(task, keras_bert3.CausalLM):
        last = outputs[np.arange(len(outputs)), inputs["lengths"] - 1]
        return {"log_probabilities": last - np.log(np.exp(last).sum(-1, keepdims=True))}
    if isinstance(task, keras_bert3.MaskedLM):
        return {{"masked_lm": "scores"}.get(name, name): v for name, v in outputs.items()}
    if isinstance(outputs, dict):
        return outputs
    if isinstance(task, keras_bert3.TextEmbedder):
        return {"embedding": outputs}
    return {"score": outputs[:, 0]} if outputs.shape[-1] == 1 else {"scores": outputs}


def serve(directories: list[Path]) -> tuple[subprocess.Popen, str]:
    """Start the server for some models."""
    command = [sys.executable, "-m", "keras_bert3.serving.server", *map(str, directories)]
    process = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    if found is None:
        process.kill()
        raise RuntimeError("Expected a server. Received: none that started")
    return process, found[0]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args().only
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    worst = 0.0
    print(f"backend {keras.backend.backend()}, largest difference by shape")
    with tempfile.TemporaryDirectory() as folder:
        made, seconds = {}, {}
        for name in chosen:
            keras.utils.set_random_seed(3)
            made[name] = KINDS[name]()
            train(made[name])
            begin = time.perf_counter()
            export_saved_model(made[name], Path(folder) / name)
            seconds[name] = time.perf_counter() - begin
        process, url = serve([Path(folder) / name for name in chosen])
        try:
            print(f"| {'task':20} | " + " | ".join(map(str, SHAPES)) + " | export s |")
            for name, task in made.items():
                client, row = Client(name, url, deadline=120), []
                for seed, shape in enumerate(SHAPES):
                    inputs = draw(task, *shape, seed)
                    found = client.predict(inputs, "tokens")
                    pairs = expected_outputs(task, inputs).items()
                    row.append(max(float(np.abs(found[n] - value).max()) for n, value in pairs))
                worst = max(worst, *row)
                cells = " | ".join(f"{value:.1e}" for value in row)
                print(f"| {name:20} | {cells} | {seconds[name]:8.1f} |", flush=True)
        finally:
            process.kill()
            process.wait()
    print(f"largest {worst:.1e}, bound {BOUND:.0e}")
    return int(worst > BOUND)


if __name__ == "__main__":
    sys.exit(main())
