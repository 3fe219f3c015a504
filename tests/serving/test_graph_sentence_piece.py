import json

import keras
import numpy as np
import pytest

from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.text_classifier import TextClassifier
from keras_bert3.tokenizers.sentence_piece import FIRST_PIECES, SentencePieceTokenizer
from keras_bert3.tokenizers.sentence_piece_model import model_of_pieces
from keras_bert3.tokenizers.sentence_piece_training import train_sentence_piece
from tests.serving.conftest import served
from tests.tasks import toy
from tests.tokenizers.test_sentence_piece import SENTENCES, fuzz

pytest.importorskip("sentencepiece")
tf = pytest.importorskip("tensorflow", exc_type=ImportError)
pytest.importorskip("tensorflow_text", exc_type=ImportError)
if keras.backend.backend() != "tensorflow":
    pytest.skip("the graph is TensorFlow's, whatever the backend", allow_module_level=True)

from keras_bert3.serving.export import export_saved_model  # noqa: E402
from keras_bert3.serving.graph_sentence_piece import GraphSentencePiece  # noqa: E402


def test_texts_give_the_ids_of_the_python_path():
    tokenizer = train_sentence_piece(SENTENCES * 5, 330)
    graph = GraphSentencePiece(tokenizer)
    texts = [*fuzz(3500), *SENTENCES, "", " ", "[MASK]", "a\x00b"]
    found = graph(tf.constant(texts)).to_list()
    wrong = [t for t, a, b in zip(texts, found, tokenizer(texts), strict=True) if a != b]
    assert not wrong, (len(wrong), wrong[:5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
        graph(tf.constant([b"\xff"]))


def test_of_cuts_of_equal_score_python_and_graph_take_the_same():
    scores = [("▁", -1.1), ("a", -2.3), ("aa", -3.7)]
    pieces = [*((piece, 0.0) for piece in FIRST_PIECES), *scores]
    tokenizer = SentencePieceTokenizer(model_of_pieces(pieces))
    assert tokenizer.tokenize("aaa") == ["▁", "a", "aa"]
    texts = ["a" * count for count in range(1, 60)]
    assert GraphSentencePiece(tokenizer)(tf.constant(texts)).to_list() == tokenizer(texts)


def test_V6_the_model_is_saved_with_the_graph_that_uses_it(tmp_path):
    tokenizer = train_sentence_piece(SENTENCES * 5, 330)
    backbone = toy.backbone(num_layers=1, vocabulary_size=331, initializer_range=0.5)
    task = TextClassifier(backbone, 3, Preprocessor(tokenizer))
    version = export_saved_model(task, tmp_path / "spm")
    report = json.loads((version / "export.json").read_text(encoding="utf-8"))
    assert "SentencepieceTokenizeOp" in report["operations"]
    texts = ["lower than the sea", "中 é [SEP]\x00"]
    with served(tmp_path / "spm") as (client, _):
        found = client.predict(texts)["scores"]
    np.testing.assert_allclose(found, task.predict(texts, verbose=0), atol=1e-5)
