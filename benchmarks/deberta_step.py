"""What a training step of DeBERTa costs: over BERT's, and beside two other libraries.

    KERAS_BACKEND=jax python benchmarks/deberta_step.py --length 128 --batch-size 16
    KERAS_BACKEND=torch python benchmarks/deberta_step.py --length 512 --batch-size 4

Forward, backward and update of a classifier on the first token: base size (12 layers of 768), one
vocabulary, dropout 0.1 everywhere, AdamW as each library brings it (keras-hub: that of Keras,
transformers: that of PyTorch), float32, random token ids without padding. All models are
made first, then take one step each in turn, `--rounds` times over, so that whatever else the
machine does falls on all alike; the medians are compared: of the time by the clock, and of the time
on processors, which other programs change less. Ours are BERT, DeBERTa v1 and the network
of v2 and v3; the others are keras-hub's DebertaV3 on the same backend and, on PyTorch,
transformers' Deberta and DebertaV2. Models of other backends are measured in other runs.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

VOCABULARY_SIZE = 30522
BASE = {"vocabulary_size": VOCABULARY_SIZE, "num_heads": 12, "hidden_dim": 768}


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a measurement."""

    length: int = 128
    """Tokens in a sequence."""
    batch_size: int = 16
    """Sequences in a step."""
    num_layers: int = 12
    """Blocks; 12 in the base size."""
    rounds: int = 5
    """Steps of each model that count, after two that do not."""
    models: tuple[str, ...] = ()
    """Names of MODELS; empty for all that the backend can run."""
    jit_compile: bool = False
    """Compile with XLA on TensorFlow's CPU, all models alike; JAX always does."""
    dtype: str = "float32"
    """Keras dtype policy of the Keras models."""


def keras_step(
    config: Config, backbone: Any, optimizer: Any, output: str | None
) -> Callable[[], None]:
    """Return one training step of a Keras backbone and a classifier."""
    import keras
    import numpy as np

    names = ("token_ids", "padding_mask")
    inputs = {name: keras.Input((config.length,), dtype="int32", name=name) for name in names}
    hidden = backbone(inputs)
    hidden = hidden if output is None else hidden[output]
    model = keras.Model(inputs, keras.layers.Dense(2, dtype="float32")(hidden[:, 0]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    jit = True if config.jit_compile else "auto"
    model.compile(optimizer, loss, jit_compile=jit)
    shape = (config.batch_size, config.length)
    x = {
        "token_ids": np.random.default_rng(0).integers(5, VOCABULARY_SIZE, shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }
    y = np.arange(config.batch_size) % 2
    return lambda: model.train_on_batch(x, y)


def ours(config: Config, name: str, **arguments: Any) -> Callable[[], None]:
    """Return a step of one of our backbones."""
    import keras_bert3
    from keras_bert3.training.optimizers import AdamW

    backbone = getattr(keras_bert3, name)(
        **BASE, num_layers=config.num_layers, intermediate_dim=3072, **arguments
    )
    if backbone.has_pooler:  # this classifier does without
        backbone.pooler.trainable = False
    optimizer = AdamW(1e-5, global_clipnorm=None)  # as the others: no clipping
    return keras_step(config, backbone, optimizer, "sequence_output")


def keras_hub(config: Config) -> Callable[[], None]:
    """Return a step of keras-hub's DebertaV3."""
    import keras
    from keras_hub.models import DebertaV3Backbone

    backbone = DebertaV3Backbone(
        **BASE, num_layers=config.num_layers, intermediate_dim=3072, bucket_size=256
    )
    return keras_step(config, backbone, keras.optimizers.AdamW(1e-5), None)


def transformers(config: Config, name: str, **arguments: Any) -> Callable[[], None]:
    """Return a step of a model of transformers."""
    import torch
    import transformers as library

    settings = getattr(library, f"{name}Config")(
        vocab_size=VOCABULARY_SIZE,
        num_hidden_layers=config.num_layers,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        type_vocab_size=0,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_biased_input=False,
        **arguments,
    )
    model = getattr(library, f"{name}Model")(settings).train()
    classifier = torch.nn.Linear(768, 2)
    optimizer = torch.optim.AdamW([*model.parameters(), *classifier.parameters()], lr=1e-5)
    ids = torch.randint(5, VOCABULARY_SIZE, (config.batch_size, config.length))
    mask, labels = torch.ones_like(ids), torch.arange(config.batch_size) % 2

    def step():
        hidden = model(ids, attention_mask=mask).last_hidden_state
        loss = torch.nn.functional.cross_entropy(classifier(hidden[:, 0]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


BUCKETS = {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True}
MODELS: dict[str, Callable[[Config], Callable[[], None]]] = {
    "bert": lambda config: ours(config, "BertBackbone"),
    "deberta": lambda config: ours(config, "DebertaBackbone"),
    "deberta-v2": lambda config: ours(config, "DebertaV2Backbone"),
    "keras-hub-v3": keras_hub,
    "transformers-v1": lambda config: transformers(config, "Deberta"),
    "transformers-v2": lambda config: transformers(config, "DebertaV2", **BUCKETS),
}


def measure(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list]:
    """Measure each step in each round, the models taking turns; two rounds are not counted.

    Returns:
        For each model a list of `(seconds by the clock, seconds on processors)`.
    """
    seconds: dict[str, list] = {name: [] for name in steps}
    for count in range(rounds + 2):
        for name, step in steps.items():
            started = time.perf_counter(), time.process_time()
            step()
            spent = time.perf_counter() - started[0], time.process_time() - started[1]
            if count >= 2:
                seconds[name].append(spent)
    return seconds


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Measure and print; return the medians in seconds."""
    import tyro

    config = tyro.cli(Config, args=arguments, description=__doc__)
    import keras

    keras.config.set_dtype_policy(config.dtype)
    backend = keras.backend.backend()
    able = [name for name in MODELS if backend == "torch" or not name.startswith("transformers")]
    steps = {name: MODELS[name](config) for name in config.models or able}
    seconds = measure(steps, config.rounds)
    medians = {
        name: [statistics.median(column) for column in zip(*values, strict=True)]
        for name, values in seconds.items()
    }
    first = next(iter(medians))
    print(f"{backend}, {config.num_layers} layers, {config.batch_size} x {config.length} tokens")
    for name, (clock, work) in medians.items():
        print(
            f"  {name:16} {clock:8.3f} s, {clock / medians[first][0]:.2f} x {first};  on processors"
            f" {work:8.3f} s, {work / medians[first][1]:.2f} x"
        )
    return {name: clock for name, (clock, _) in medians.items()}


if __name__ == "__main__":
    main()
