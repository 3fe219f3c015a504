import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert3 import DebertaV2Backbone, MaskedLM
from keras_bert3.tasks.masked_lm import MaskedLMPreprocessor
from tests.tasks import toy

pytest.importorskip("matplotlib")
RECIPE = Path(__file__).parents[2] / "recipes" / "attention_picture.py"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("attention_picture", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["attention_picture"] = module
    spec.loader.exec_module(module)
    return module


def test_a_preset_is_drawn(recipe, tmp_path):
    tokenizer = toy.tokenizer()
    size = {**toy.SIZE, "num_layers": 2}
    backbone = DebertaV2Backbone(tokenizer.vocabulary_size, **size, span=4)
    MaskedLM(backbone, preprocessor=MaskedLMPreprocessor(tokenizer)).save_to_preset(tmp_path / "p")
    given = [str(tmp_path / "p"), "the cat sat on the mat", "--output", str(tmp_path / "map.png")]
    pictures = recipe.main([*given, "--layer", "0", "--head", "1"])
    assert (tmp_path / "map.png").read_bytes()[1:4] == b"PNG"
    assert list(pictures)[1:] == ["c2c scores", "c2p scores", "p2c scores", "attention"]
    delta = pictures["delta(i, j)"]
    assert delta.shape == (8, 8) and (np.diag(delta) == 4).all()
    assert delta[2, 0] == 6 and delta[0, 2] == 2, "row: query minus key"
    np.testing.assert_allclose(pictures["attention"].sum(-1), 1)
    with pytest.raises(ValueError, match=r"`head` in \[0, 2\). Received: 2"):
        recipe.main([*given, "--head", "2"])


def test_a_piece_of_dollar_signs_is_no_formula(recipe, tmp_path):
    recipe.draw(["$$", "a"], {"scores": np.zeros((2, 2))}, str(tmp_path / "map.png"))
    assert (tmp_path / "map.png").exists()
