"""Which layout a folder has: the one place that knows."""

from pathlib import Path
from types import ModuleType

from keras_bert3.checkpoints import folders, google_bert, huggingface, keras_hub, native, openai_gpt

LAYOUTS = (
    "a keras_bert3 preset (config.json, model.weights.h5), a Hugging Face model (config.json, "
    "model.safetensors or pytorch_model.bin), a google-research/bert model (bert_config.json, "
    "bert_model.ckpt.index), an openai/finetune-transformer-lm model (params_shapes.json, "
    "params_0.npy to params_9.npy) or a KerasHub preset (config.json, model.weights.h5)"
)


def reader_of(folder: Path) -> ModuleType:
    """Return the module that reads the layout of `folder`.

    Every reader has `describe(folder)`, `load_tokenizer(folder, description)` and
    `load_weights(folder, backbone, heads)`.

    Raises:
        ValueError: if the folder is missing or of no known layout, listing what is there.
    """
    if not folder.is_dir():
        raise ValueError(f"Expected the folder of a checkpoint. Received: no folder at '{folder}'")
    config = folder / "config.json"
    if config.is_file():
        content = folders.read_json(config)
        if content.get("format") == native.FORMAT:
            return native
        if str(content.get("registered_name")).startswith(keras_hub.PACKAGES):
            return keras_hub
        if "model_type" in content or "num_hidden_layers" in content:
            return huggingface
    if (folder / google_bert.CONFIG_FILE).is_file():
        return google_bert
    if (folder / openai_gpt.SHAPES_FILE).is_file():
        return openai_gpt
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
    raise ValueError(f"Expected {LAYOUTS} in '{folder}'. Received: a folder with {present}")
