"""Three families of models on three meshes of eight devices of a CPU: losses, and what lies where.

KERAS_BACKEND=jax python -m tests.training.meshes --steps 50
"""

import argparse
import itertools
import json
import os
import re
import tempfile
from pathlib import Path

FLAGS = "--xla_force_host_platform_device_count=8 --xla_dump_hlo_module_re=.*train_step"
MESHES = ("one", "data=8", "data=4,model=2")
FAMILIES = ("bert", "gpt", "deberta")
ROWS, TOKENS = 8, 12
VOCABULARY = 25  # which two devices do not divide
FOREIGN = r"\b(infeed|outfeed|send|recv|custom-call)[.\d]*\("


def make(family, dropout):
    from keras_bert3.backbones.deberta import DebertaBackbone
    from keras_bert3.backbones.gpt import GPTBackbone
    from keras_bert3.tasks.causal_lm import CausalLM
    from keras_bert3.tasks.masked_lm import MaskedLM
    from tests.tasks import toy

    if family == "bert":
        return MaskedLM(toy.backbone(vocabulary_size=VOCABULARY, dropout=dropout))
    size = {**toy.SIZE, "vocabulary_size": VOCABULARY, "dropout": dropout}
    decoder = {"num_steps": 1}
    if family == "gpt":
        return CausalLM(GPTBackbone(**size))
    return MaskedLM(DebertaBackbone(**{**size, "num_layers": 2}, span=8), mask_decoder=decoder)


def batches(family):
    from tests.tasks import toy

    for seed in range(10**6):
        x, y, weights = toy.batch(ROWS, TOKENS, seed=seed)
        if family == "gpt":
            ids = x["token_ids"]
            weights = (ids % 3 > 0).astype("float32")
            yield {k: x[k] for k in ("token_ids", "padding_mask")}, ids[:, ::-1].copy(), weights
        elif family == "deberta":
            yield x, {"masked_lm": y["masked_lm"]}, {"masked_lm": weights["masked_lm"]}
        else:
            yield x, y, weights


def compiled(family, dropout):
    from keras_bert3.training.optimizers import BertAdam

    task = make(family, dropout)
    task.compile(optimizer=BertAdam(1e-2, epsilon=1e-3))
    return task


def fit(task, family, steps):
    """Losses of each step."""
    import keras

    losses = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
    )
    task.fit(batches(family), epochs=steps, steps_per_epoch=1, verbose=0, callbacks=[keep])
    return losses


def train(family, mesh, steps, dropout, folder):
    """Losses of two runs from one checkpoint, bytes a device, and what checkpoints keep."""
    import keras

    from keras_bert3.training import distribution
    from keras_bert3.training.checkpointing import Checkpoints

    keras.utils.set_random_seed(0)
    layouts = distribution.distribute(mesh, ROWS) if mesh != "one" else {}
    task, checkpoints = compiled(family, dropout), Checkpoints(folder / family / mesh)
    distribution.check_layouts(task, layouts)
    checkpoints.save(task, 0)
    uneven = scores(task, family) if mesh != "data=8" else None  # one mesh shows it
    losses = fit(task, family, steps)
    checkpoints.save(task, steps)
    checkpoints.restore(task, step=0)
    again = fit(task, family, steps)
    held = [distribution.bytes_per_device(v) for v in (task.variables, task.optimizer.variables)]
    keras.distribution.set_distribution(None)
    kept = None
    if layouts:
        kept = is_kept_on_one_device(family, task, compiled(family, dropout), checkpoints, folder)
    sizes = {v.path: [*v.shape] for v in task.trainable_variables}
    found = {"losses": losses, "again": again, "held": held, "sizes": sizes, "kept": kept}
    return {**found, "uneven": uneven}


def scores(task, family):
    """Loss, metrics and outputs where the last batch has three rows."""
    import keras
    import numpy as np

    x, y, weights = keras.tree.map_structure(
        lambda *parts: np.concatenate(parts)[: ROWS + 3], *itertools.islice(batches(family), 2)
    )
    found = task.evaluate(x, y, batch_size=ROWS, sample_weight=weights, verbose=0)
    outputs = task.predict({k: v[ROWS:] for k, v in x.items()}, verbose=0)
    return [*found, *(float(np.abs(part).sum()) for part in keras.tree.flatten(outputs))]


def is_kept_on_one_device(family, task, twin, checkpoints, folder):
    """Whether a model without a mesh gets from checkpoint and file what is cut into shards here."""
    import keras
    import numpy as np

    from keras_bert3.training.checkpointing import whole_value

    path = folder / f"{family}.weights.h5"
    checkpoints.restore(twin)
    pairs = zip(
        [*task.variables, *task.optimizer.variables],
        [*twin.variables, *twin.optimizer.variables],
        strict=True,
    )
    equal = [np.array_equal(whole_value(one), whole_value(other)) for one, other in pairs]
    keras.saving.save_weights(task.backbone, path)  # as presets do
    keras.saving.load_weights(twin.backbone, path)
    table = twin.backbone.token_embeddings
    equal.append(np.array_equal(table, whole_value(task.backbone.token_embeddings)))
    keras.saving.load_weights(task.backbone, path)
    spare = np.asarray(task.backbone.token_embeddings.value)[VOCABULARY:]
    return {"equal": all(equal), "rows": table.shape[0], "spare": float(np.abs(spare).max())}


def sent(folder, count):
    """Of the program compiled last: the shapes in each all-reduce, and what leaves the devices."""
    found = sorted(folder.glob("*train_step.*after_optimizations.txt"))
    assert len(found) == count, found
    text = found[-1].read_text()
    shapes = [re.findall(r"f32\[([\d,]*)\]", s) for s in re.findall(r"= (.*) all-reduce\(", text)]
    return {"all_reduce": shapes, "foreign": re.findall(FOREIGN, text)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--runs", nargs="*", default=[f"{f}:{m}" for f in FAMILIES for m in MESHES])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as dump:
        given = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{given} {FLAGS} --xla_dump_hlo_as_text --xla_dump_to={dump}"
        results = {}
        for count, run in enumerate(options.runs, 1):
            family, mesh = run.split(":")
            results[run] = train(family, mesh, options.steps, options.dropout, Path(dump))
            results[run] |= sent(Path(dump), count)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
