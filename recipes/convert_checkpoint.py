"""Convert a checkpoint from any layout to any other, and say what became of every tensor.

    python recipes/convert_checkpoint.py --source uncased_L-12_H-768_A-12 --target bert
        Google's release (or a Hugging Face folder, a KerasHub preset, a name such as hf://owner/name)
        as a preset of keras_bert3.

    python recipes/convert_checkpoint.py --source bert --target bert-hf --layout huggingface
        A preset for `transformers`.

    python recipes/convert_checkpoint.py --source bert --target bert-g --layout google --no-heads
        The network alone, for google-research/bert (needs TensorFlow).

    python recipes/convert_checkpoint.py --source gpt --target model --layout openai
        A GPT-1 for openai/finetune-transformer-lm.

Heads and the tokenizer come along where the source has them.
"""

import dataclasses
import sys
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a conversion."""

    source: str
    """A folder, hf://owner/name or kaggle://owner/model/framework/variation."""
    target: str
    """The folder to write, new or empty."""
    layout: Literal["keras", "huggingface", "google", "openai"] = "keras"
    """What to write: our own preset, Hugging Face's files, google-research/bert's or OpenAI's."""
    heads: bool = True
    """Convert the heads of the task that the source is of. Without: the backbone alone."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Of the tensors written for Hugging Face."""
    overwrite: bool = False
    """Replace the checkpoint that stands at the target."""
    names: int = 10
    """Names to print in each group of the report."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> None:
    """Run the recipe."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    from keras_bert3 import Backbone, Task
    from keras_bert3.checkpoints import google_bert, huggingface, native, openai_gpt, preset
    from keras_bert3.checkpoints.report import print_report

    if config.heads and preset.task_name(config.source) is not None:
        model, report = preset.read_task(config.source, Task)
    else:
        model, report = preset.read_backbone(config.source, Backbone)
    print_report(report, config.names)
    common = {"overwrite": config.overwrite, "tokenizer": preset.read_tokenizer(config.source)}
    if config.layout == "huggingface":
        huggingface.save_huggingface(model, config.target, dtype=config.dtype, **common)
    elif config.layout == "google":
        google_bert.save_google_bert(model, config.target, **common)
    elif config.layout == "openai":
        openai_gpt.save_openai_gpt(model, config.target, **common)
    else:
        native.save(model, config.target, **common)
    print(f"wrote {type(model).__name__} to {config.target}")


if __name__ == "__main__":
    main()
