import json

import pytest

from keras_bert3.checkpoints import google_bert, huggingface, keras_hub, native, openai_gpt
from keras_bert3.checkpoints.detect import reader_of


@pytest.mark.parametrize(
    ("file", "content", "reader"),
    [
        ("config.json", {"format": "keras_bert3"}, native),
        ("config.json", {"registered_name": "keras_hub>BertBackbone"}, keras_hub),
        ("config.json", {"model_type": "bert"}, huggingface),
        ("config.json", {"num_hidden_layers": 2}, huggingface),
        ("bert_config.json", {}, google_bert),
        ("params_shapes.json", {}, openai_gpt),
    ],
)
def test_each_layout_is_known_by_its_file(tmp_path, file, content, reader):
    (tmp_path / file).write_text(json.dumps(content))
    assert reader_of(tmp_path) is reader


def test_other_folders_are_refused_with_what_is_there(tmp_path):
    with pytest.raises(ValueError, match="Received: a folder with nothing"):
        reader_of(tmp_path)
    (tmp_path / "cat.jpg").touch()
    with pytest.raises(ValueError, match="a Hugging Face model.*Received: a folder with cat.jpg"):
        reader_of(tmp_path)
    with pytest.raises(ValueError, match="Received: no folder at"):
        reader_of(tmp_path / "absent")
