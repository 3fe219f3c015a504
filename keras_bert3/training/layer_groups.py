"""Parts of a model that are trained differently: what is not decayed, what learns more slowly."""

import keras

_NORMS = (
    keras.layers.BatchNormalization,
    keras.layers.GroupNormalization,
    keras.layers.LayerNormalization,
    keras.layers.RMSNormalization,
)


def norms_and_biases(model) -> list[keras.Variable]:
    """Find the variables that weight decay leaves alone, by the layer that owns them.

    These are all weights of normalisations and everything called bias. The optimisers here know
    them by name; for a layer of your own whose gains have other names, or another optimiser:

    Args:
        model: a model or layer whose weights exist.

    Example:
        >>> optimizer.exclude_from_weight_decay(norms_and_biases(task))
    """
    found = {}
    for layer in model._flatten_layers():
        for variable in layer.trainable_variables:
            if isinstance(layer, _NORMS) or variable.name.endswith("bias"):
                found[id(variable)] = variable
    return list(found.values())


def layerwise_rates(backbone, factor) -> dict[str, float]:
    """Let a backbone learn more slowly the further a layer is from the output, in fine-tuning.

        rate(block i of L) = factor^(L + 1 - i),  rate(embeddings) = factor^(L + 1),  rate(head) = 1

    Discriminative fine-tuning (Howard & Ruder 2018, section 3.2), with the head at the full rate as
    in google-research/electra. A pooler counts as head.

    Args:
        backbone: a `Backbone`.
        factor: from one layer to the next below, such as 0.9; 1 changes nothing.

    Returns:
        `rate_factors` of an optimiser.

    Raises:
        ValueError: unless 0 < factor <= 1.

    Example:
        >>> AdamW(3e-5, rate_factors=layerwise_rates(task.backbone, 0.9))
    """
    if not 0 < factor <= 1:
        raise ValueError(f"Expected 0 < factor <= 1. Received: factor={factor}")
    depth = len(backbone.blocks) + 1
    rates = {f"/{block.name}/": factor ** (depth - i) for i, block in enumerate(backbone.blocks, 1)}
    pooler = getattr(backbone, "pooler", None)
    for layer in backbone._flatten_layers(include_self=False, recursive=False):
        if layer is not pooler and layer not in backbone.blocks and layer.trainable_variables:
            rates[f"/{backbone.name}/{layer.name}/"] = factor**depth
    return rates


def factors_of(pieces: dict[str, float], paths: list[str]) -> list[float]:
    """Return the factor of each path: that of the one piece in it, or 1.

    Raises:
        ValueError: if a piece is in no path, or two are in one.

    Example:
        >>> factors_of({"/block_0/": 0.5}, ["bert/block_0/kernel", "head/kernel"])
        [0.5, 1.0]
    """
    found = [[piece for piece in pieces if piece in f"/{path}/"] for path in paths]
    unused = set(pieces).difference(*found) if pieces else ()
    if unused:
        raise ValueError(
            f"Expected each piece of `rate_factors` in the path of a variable, such as {paths[0]}. "
            f"Received: {sorted(unused)[0]!r}, which is in none"
        )
    for path, matches in zip(paths, found, strict=True):
        if len(matches) > 1:
            raise ValueError(
                f"Expected one piece of `rate_factors` at most in a path. Received: {path}, "
                f"in which are {' and '.join(map(repr, matches))}"
            )
    return [float(pieces[matches[0]]) if matches else 1.0 for matches in found]
