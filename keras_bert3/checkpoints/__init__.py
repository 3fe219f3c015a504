"""Released checkpoints in, our own folders out, and back again."""

import importlib
from typing import TYPE_CHECKING

_MODULE_OF = {
    "LoadReport": "report",
    "from_keras_hub": "keras_hub",
    "print_report": "report",
    "read_backbone": "preset",
    "read_task": "preset",
    "resize_positions": "positions",
    "resize_vocabulary": "vocabulary_size",
    "save_backbone": "preset",
    "save_google_bert": "google_bert",
    "save_huggingface": "huggingface",
    "save_openai_gpt": "openai_gpt",
    "save_task": "preset",
}

__all__ = [*_MODULE_OF]

if TYPE_CHECKING:
    from keras_bert3.checkpoints.google_bert import save_google_bert as save_google_bert
    from keras_bert3.checkpoints.huggingface import save_huggingface as save_huggingface
    from keras_bert3.checkpoints.keras_hub import from_keras_hub as from_keras_hub
    from keras_bert3.checkpoints.openai_gpt import save_openai_gpt as save_openai_gpt
    from keras_bert3.checkpoints.positions import resize_positions as resize_positions
    from keras_bert3.checkpoints.preset import read_backbone as read_backbone
    from keras_bert3.checkpoints.preset import read_task as read_task
    from keras_bert3.checkpoints.preset import save_backbone as save_backbone
    from keras_bert3.checkpoints.preset import save_task as save_task
    from keras_bert3.checkpoints.report import LoadReport as LoadReport
    from keras_bert3.checkpoints.report import print_report as print_report
    from keras_bert3.checkpoints.vocabulary_size import resize_vocabulary as resize_vocabulary


def __getattr__(name: str):
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
