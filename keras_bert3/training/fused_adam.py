"""Adam's update as one kernel (PyTorch): a walk over the weights in place of a dozen.

PyTorch's fused AdamW computes

    p = p (1 - r d) - r m / c1 / (sqrt(v) / sqrt(c2) + eps)

which is `AdamW` of `optimizers` for r = lr and the corrections c1, c2 of step t; with t so large
that both are 1 it is `BertAdam`, and with r = lr sqrt(c2) / c1 beside it `GPTAdam`.
"""

import importlib

import keras

ENDLESS = 1e9
"""A step at which both corrections are 1."""

_DEVICES = ("cpu", "cuda")


def is_available(variables) -> bool:
    """Whether PyTorch has its kernel for these variables."""
    if keras.backend.backend() != "torch":
        return False
    return all(v.value.device.type in _DEVICES and v.value.is_floating_point() for v in variables)


def update(optimizer, gradients, variables, rate, step) -> None:
    """Take a step of Adam with decoupled decay.

    Args:
        optimizer: a built `DecoupledAdam`.
        gradients: a tensor a variable.
        variables: those to update, with their moments.
        rate: r, a tensor or a float; `rate_factors` are multiplied to it.
        step: t, counted from 1.
    """
    torch = importlib.import_module("torch")
    adamw = importlib.import_module("torch.optim.adamw").adamw
    groups: dict[tuple[float, float], list[tuple]] = {}
    for gradient, variable in zip(gradients, variables, strict=True):
        index = optimizer._get_variable_index(variable)
        moments = (optimizer._momentums[index].value, optimizer._velocities[index].value)
        settings = (optimizer._decay_of[index], optimizer._rate_of[index])
        value = variable.value
        groups.setdefault(settings, []).append((value, gradient.to(value.dtype), *moments))
    for (decay, factor), rows in groups.items():
        parameters, gradients, momentums, velocities = map(list, zip(*rows, strict=True))
        # The kernel counts a step itself before it looks at the count.
        steps = torch.full((len(rows),), float(step) - 1, device=parameters[0].device)
        adamw(
            parameters,
            gradients,
            momentums,
            velocities,
            [],
            list(steps.unbind()),
            fused=True,
            amsgrad=False,
            beta1=optimizer.beta_1,
            beta2=optimizer.beta_2,
            lr=rate * factor,
            weight_decay=decay,
            eps=optimizer.epsilon,
            maximize=False,
        )
