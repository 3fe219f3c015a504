"""What a checkpoint folder says it holds, whatever its format."""

import dataclasses
import numbers


@dataclasses.dataclass(frozen=True)
class Description:
    """The classes to construct before weights can be loaded, by their public names.

    Args:
        backbone_class: such as `BertBackbone`.
        backbone_config: the backbone's constructor arguments.
        task_class: such as `MaskedLM`; None where the folder holds a backbone alone or says
            nothing.
        task_config: the task's constructor arguments, without the backbone and the preprocessor.
        more_heads: names of heads that the folder holds besides those of its task.
        preprocessor_class: None where the folder has none.
        preprocessor_config: its constructor arguments, without the tokenizer.
        tokenizer_class: None where the folder has none.
    """

    backbone_class: str
    backbone_config: dict
    task_class: str | None = None
    task_config: dict = dataclasses.field(default_factory=dict)
    more_heads: tuple[str, ...] = ()
    preprocessor_class: str | None = None
    preprocessor_config: dict = dataclasses.field(default_factory=dict)
    tokenizer_class: str | None = None


_SIZES = (
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    "max_sequence_length",
)
_AMOUNTS = ("layer_norm_epsilon", "initializer_range")


def check_sizes(config: dict, source) -> None:
    """Refuse a backbone's arguments that cannot be sizes, before anything is built of them.

    Args:
        config: the backbone's constructor arguments.
        source: where they come from, for the error.

    Raises:
        ValueError: naming the first that is no whole number above 0, or no number where one is due.
    """
    for name in _SIZES:
        size = config.get(name, 1)
        if not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(
                f"Expected a whole number above 0 as {name} of the model in '{source}'. "
                f"Received: {size!r}"
            )
    for name in _AMOUNTS:
        amount = config.get(name, 1.0)
        if (
            not isinstance(amount, numbers.Real)
            or isinstance(amount, bool)
            or not float(amount) >= 0
        ):
            raise ValueError(
                f"Expected a number not below 0 as {name} of the model in '{source}'. "
                f"Received: {amount!r}"
            )
