"""How the papers fine-tune: optimiser, peak learning rate, share of updates that warms up."""

from typing import NamedTuple

import keras

from keras_bert3.training.schedules import WarmupLinearDecay


class FineTuning(NamedTuple):
    """A paper's recipe.

    | paper                                    | optimiser  | rate               | warm-up |
    |------------------------------------------|------------|--------------------|---------|
    | BERT (Devlin et al. 2018, appendix A.3)  | `BertAdam` | 5e-5, 3e-5 or 2e-5 | 0.1     |
    | GPT-1 (Radford et al. 2018, section 4.1) | `GPTAdam`  | 6.25e-5            | 0.002   |
    | DeBERTa (He et al. 2021, appendix A)     | `BertAdam` | 1.5e-5 to 4e-5     | 0.1     |

    Args:
        optimizer: a class that takes a learning rate first.
        learning_rate: the peak.
        warmup: share of the updates until it is reached.
    """

    optimizer: type[keras.optimizers.Optimizer]
    learning_rate: float
    warmup: float

    def make(self, updates: int | None = None) -> keras.optimizers.Optimizer:
        """Create the optimiser.

        Args:
            updates: of the whole run: the rate warms up and falls linearly to 0 over them; where
                None, nobody knows, and the rate stays what it is.
        """
        if updates is None:
            return self.optimizer(self.learning_rate)
        warmup = int(self.warmup * updates)
        return self.optimizer(WarmupLinearDecay(self.learning_rate, warmup, updates))
