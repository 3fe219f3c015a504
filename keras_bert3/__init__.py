"""BERT, GPT-1 and DeBERTa for Keras 3, on TensorFlow, JAX and PyTorch.

Names are imported when first used, so that `import keras_bert3` costs nothing and touches no
framework.
"""

import importlib
from typing import TYPE_CHECKING

from keras_bert3.version import __version__

_MODULE_OF = {
    "Backbone": "keras_bert3.backbones.backbone",
    "BertBackbone": "keras_bert3.backbones.bert",
    "BiLSTMBackbone": "keras_bert3.backbones.bilstm",
    "BytePairTokenizer": "keras_bert3.tokenizers.byte_pair",
    "ByteLevelBytePairTokenizer": "keras_bert3.tokenizers.byte_level_byte_pair",
    "CausalLM": "keras_bert3.tasks.causal_lm",
    "CausalLMPreprocessor": "keras_bert3.tasks.causal_lm",
    "DebertaBackbone": "keras_bert3.backbones.deberta",
    "DebertaV2Backbone": "keras_bert3.backbones.deberta_v2",
    "ExtractiveQA": "keras_bert3.tasks.extractive_qa",
    "ExtractiveQAPreprocessor": "keras_bert3.tasks.question_windows",
    "GPTBackbone": "keras_bert3.backbones.gpt",
    "GPTMultipleChoice": "keras_bert3.tasks.gpt_fine_tuning",
    "GPTMultipleChoicePreprocessor": "keras_bert3.tasks.gpt_preprocessors",
    "GPTPreprocessor": "keras_bert3.tasks.gpt_preprocessors",
    "GPTSimilarity": "keras_bert3.tasks.gpt_fine_tuning",
    "GPTSimilarityPreprocessor": "keras_bert3.tasks.gpt_preprocessors",
    "GPTTextClassifier": "keras_bert3.tasks.gpt_fine_tuning",
    "LSTMBackbone": "keras_bert3.backbones.lstm",
    "LeftToRightBertBackbone": "keras_bert3.backbones.left_to_right_bert",
    "MaskedLM": "keras_bert3.tasks.masked_lm",
    "MultipleChoice": "keras_bert3.tasks.multiple_choice",
    "ReplacedTokenDetection": "keras_bert3.tasks.replaced_token_detection",
    "SentencePieceTokenizer": "keras_bert3.tokenizers.sentence_piece",
    "SiFT": "keras_bert3.objectives.sift",
    "Task": "keras_bert3.tasks.task",
    "TextClassifier": "keras_bert3.tasks.text_classifier",
    "TextEmbedder": "keras_bert3.tasks.text_embedder",
    "TokenClassifier": "keras_bert3.tasks.token_classifier",
    "TokenClassifierPreprocessor": "keras_bert3.tasks.token_windows",
    "WordPieceTokenizer": "keras_bert3.tokenizers.word_piece",
}
_ROOMS = (
    "backbones",
    "benchmarks",
    "checkpoints",
    "data",
    "layers",
    "objectives",
    "serving",
    "tasks",
    "tokenizers",
    "training",
)

__all__ = ["__version__", *_MODULE_OF, *_ROOMS]

if TYPE_CHECKING:
    from keras_bert3.backbones.backbone import Backbone as Backbone
    from keras_bert3.backbones.bert import BertBackbone as BertBackbone
    from keras_bert3.backbones.bilstm import BiLSTMBackbone as BiLSTMBackbone
    from keras_bert3.backbones.deberta import DebertaBackbone as DebertaBackbone
    from keras_bert3.backbones.deberta_v2 import DebertaV2Backbone as DebertaV2Backbone
    from keras_bert3.backbones.gpt import GPTBackbone as GPTBackbone
    from keras_bert3.backbones.left_to_right_bert import (
        LeftToRightBertBackbone as LeftToRightBertBackbone,
    )
    from keras_bert3.backbones.lstm import LSTMBackbone as LSTMBackbone
    from keras_bert3.objectives.sift import SiFT as SiFT
    from keras_bert3.tasks.causal_lm import CausalLM as CausalLM
    from keras_bert3.tasks.causal_lm import CausalLMPreprocessor as CausalLMPreprocessor
    from keras_bert3.tasks.extractive_qa import ExtractiveQA as ExtractiveQA
    from keras_bert3.tasks.gpt_fine_tuning import GPTMultipleChoice as GPTMultipleChoice
    from keras_bert3.tasks.gpt_fine_tuning import GPTSimilarity as GPTSimilarity
    from keras_bert3.tasks.gpt_fine_tuning import GPTTextClassifier as GPTTextClassifier
    from keras_bert3.tasks.gpt_preprocessors import (
        GPTMultipleChoicePreprocessor as GPTMultipleChoicePreprocessor,
    )
    from keras_bert3.tasks.gpt_preprocessors import GPTPreprocessor as GPTPreprocessor
    from keras_bert3.tasks.gpt_preprocessors import (
        GPTSimilarityPreprocessor as GPTSimilarityPreprocessor,
    )
    from keras_bert3.tasks.masked_lm import MaskedLM as MaskedLM
    from keras_bert3.tasks.multiple_choice import MultipleChoice as MultipleChoice
    from keras_bert3.tasks.question_windows import (
        ExtractiveQAPreprocessor as ExtractiveQAPreprocessor,
    )
    from keras_bert3.tasks.replaced_token_detection import (
        ReplacedTokenDetection as ReplacedTokenDetection,
    )
    from keras_bert3.tasks.task import Task as Task
    from keras_bert3.tasks.text_classifier import TextClassifier as TextClassifier
    from keras_bert3.tasks.text_embedder import TextEmbedder as TextEmbedder
    from keras_bert3.tasks.token_classifier import TokenClassifier as TokenClassifier
    from keras_bert3.tasks.token_windows import (
        TokenClassifierPreprocessor as TokenClassifierPreprocessor,
    )
    from keras_bert3.tokenizers.byte_level_byte_pair import (
        ByteLevelBytePairTokenizer as ByteLevelBytePairTokenizer,
    )
    from keras_bert3.tokenizers.byte_pair import BytePairTokenizer as BytePairTokenizer
    from keras_bert3.tokenizers.sentence_piece import (
        SentencePieceTokenizer as SentencePieceTokenizer,
    )
    from keras_bert3.tokenizers.word_piece import WordPieceTokenizer as WordPieceTokenizer


def __getattr__(name: str):
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"keras_bert3.{name}")
    raise AttributeError(f"module 'keras_bert3' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
