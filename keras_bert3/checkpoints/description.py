"""What a checkpoint folder says it holds, whatever its format."""

import dataclasses


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
