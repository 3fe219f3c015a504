"""LoRA: fine-tuning a model through small matrices beside its frozen ones."""

import keras

ATTENTION = ("query", "value")
"""The layers that Hu et al. 2021, section 4.2 and table 5, adapt."""


def enable_lora(backbone, rank: int, alpha: float | None = None, names=ATTENTION) -> None:
    """Freeze a backbone and let low-rank changes of some kernels be trained in its place.

        y = x (W + alpha / rank A B) + b,  A [in, rank] random,  B [rank, out] zeros at first

    Hu et al. 2021, section 4.1, by `keras.layers.Dense.enable_lora`. Heads outside of the backbone
    are trained as before. `save_to_preset` stores kernels with A B added, so that a preset loads
    as if all weights had been trained; other formats would store W alone: load the preset first.

    Args:
        backbone: a `Backbone`, or any built layer or model, before `compile`.
        rank: columns of A.
        alpha: scale of the change; `rank` when None.
        names: of the dense layers to adapt.

    Raises:
        ValueError: for a rank below 1, or names that no dense layer has.

    Example:
        >>> enable_lora(task.backbone, rank=8)
        >>> task.fit(texts, labels)
    """
    dense = [layer for layer in _layers(backbone) if isinstance(layer, keras.layers.Dense)]
    chosen = [layer for layer in dense if layer.name in names]
    if rank < 1:
        raise ValueError(f"Expected a rank of at least 1. Received: {rank}")
    if not chosen:
        known = sorted({layer.name for layer in dense})
        raise ValueError(f"Expected names among {known}. Received: {tuple(names)}")
    for variable in backbone.weights:
        variable.trainable = False
    for layer in chosen:
        layer.enable_lora(rank, lora_alpha=alpha)


def _layers(layer):
    return layer._flatten_layers(include_self=False)
