import pytest

pytest.importorskip("tensorflow", exc_type=ImportError)

from keras_bert3.serving.graph_text import GraphText
from keras_bert3.tasks.masked_lm import MaskedLMPreprocessor
from keras_bert3.tokenizers.masked_text import ids_with_masks
from tests.tokenizers.test_masked_text import TEXTS, byte_level, sentence_piece, word_piece


@pytest.mark.parametrize("make", [byte_level, word_piece, sentence_piece])
def test_masks_in_a_graph_are_where_python_puts_them(make):
    tokenizer = make()
    texts = [*TEXTS[:-1], "[MASK]\tb", "[MASK]▁b", "[MASK]c.[MASK] c", "[MASK]"]
    inputs = GraphText(MaskedLMPreprocessor(tokenizer), 20).with_masks(texts)
    for row, text in zip(inputs.token_ids.numpy(), texts, strict=True):
        ids = [tokenizer.cls_id, *ids_with_masks(tokenizer, text), tokenizer.sep_id]
        assert row[row != tokenizer.pad_id].tolist() == ids
