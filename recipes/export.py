"""Export a fine-tuned preset as a SavedModel for TensorFlow Serving.

    python recipes/export.py --model run/preset --output saved_models/mnli --pair
        The next version of `mnli`, whose requests are pairs of texts.

    python recipes/export.py --model run/preset --output saved_models/sst2
        Single texts.

    python -m keras_bert3.serving.server saved_models/sst2
        Try it; docs/serving.md says how to run the real server.

Any backend does, TensorFlow must be installed: pip install 'keras-bert3[serving]'.
"""

import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of an export."""

    model: str
    """Folder of a task, as `save_to_preset` writes it, or any checkpoint with a task's heads."""
    output: str
    """Folder of the model's versions; the new one gets the next number."""
    pair: bool = False
    """Take two texts a request, `text` and `text_pair`."""
    name: str | None = None
    """Of the model at the server; the name of the folder when None."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> None:
    """Run the recipe."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    from keras_bert3 import Task
    from keras_bert3.checkpoints import preset
    from keras_bert3.serving.export import export_saved_model

    task, _ = preset.read_task(config.model, Task)
    version = export_saved_model(task, config.output, config.pair, config.name)
    print(f"exported {type(task).__name__} to {version}")


if __name__ == "__main__":
    main()
