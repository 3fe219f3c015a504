import keras
import numpy as np
import pytest

from keras_bert3.backbones import sizes
from keras_bert3.backbones.bert import BertBackbone
from keras_bert3.tasks.masked_lm import MaskedLM


def count(layer):
    return sum(int(np.prod(weight.shape)) for weight in layer.weights)


@pytest.mark.parametrize("name", sizes.BERT_PARAMETERS)
def test_every_published_size_has_its_published_number_of_parameters(name):
    # In this scope variables get shapes and no memory, so that the largest model costs nothing.
    with keras.StatelessScope(initialize_variables=False):
        backbone = BertBackbone(**sizes.BERT[name])
        task = MaskedLM(backbone)
    pooled = count(backbone)
    counts = (pooled - count(backbone.pooler), pooled, count(task))
    keras.backend.clear_session(free_memory=False)
    assert counts == sizes.BERT_PARAMETERS[name]


def test_the_24_miniatures_are_there():
    miniatures = {n for n in sizes.BERT if n.startswith("uncased_")}
    assert len(miniatures) == 24
    assert sizes.BERT["uncased_l2_h128"] == sizes.BERT["tiny"]
    assert sizes.BERT["uncased_l12_h768"] == sizes.BERT["base_uncased"]


def test_the_count_in_a_real_model_is_the_same():
    assert BertBackbone(**sizes.BERT["tiny"]).count_params() == sizes.BERT_PARAMETERS["tiny"][1]
