"""What fine-tuning has in common whatever the task: settings, optimiser, a walk over an epoch.

`finetune_texts.py`, `finetune_words.py` and `finetune_questions.py` add the model of each side, its
batches and its predictions, ours and theirs one under the other.
"""

import abc
import tempfile

MULTIPLE = 16
"""Lengths of batches of texts are rounded up to a multiple of it."""


class Ours(abc.ABC):
    """Fine-tuning with keras_bert3."""

    def __init__(self, run, seed: int):
        import keras

        from keras_bert3.training.optimizers import AdamW

        set_products(run.settings.products)
        self.settings, self.benchmark, self.seed = run.settings, run.benchmark, seed
        with tempfile.TemporaryDirectory() as folder:
            if run.settings.same_draws:
                run.kind.Transformers(run, seed).save(folder)
            keras.utils.set_random_seed(seed)
            self.task = self.load(folder if run.settings.same_draws else run.settings.model)
        inputs, labels = run.training.inputs, run.training.known_labels()
        batches = self.task.batches(inputs, labels, batch_size=self.settings.batch_size)
        self.updates = self.settings.epochs * len(batches)
        self.task.compile(AdamW(linear_schedule(self.settings.learning_rate, self.updates)))

    @abc.abstractmethod
    def load(self, folder):
        """The task from a checkpoint, with or without its head."""

    @abc.abstractmethod
    def predict(self, inputs) -> list:
        """What the benchmark scores."""

    def train(self, inputs, labels):
        """Train an epoch."""
        size = self.settings.batch_size
        callbacks = [same_draws(self.seed)] if self.settings.same_draws else []
        self.task.fit(
            inputs, labels, batch_size=size, shuffle=False, verbose=0, callbacks=callbacks
        )


class Transformers(abc.ABC):
    """Fine-tuning with transformers, by a loop as its documentation writes it."""

    def __init__(self, run, seed: int):
        import torch
        import transformers

        set_products(run.settings.products)
        transformers.set_seed(seed)
        self.settings, self.benchmark, self.torch = run.settings, run.benchmark, torch
        self.seed, self.update = seed, 0
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(run.settings.model)
        self.model = self.load()
        if run.settings.same_draws:
            self.model.set_attn_implementation("eager")
        groups = [{"params": [], "weight_decay": decay} for decay in (0.01, 0.0)]
        for name, parameter in self.model.named_parameters():
            groups[name.endswith("bias") or "LayerNorm" in name]["params"].append(parameter)
        self.optimizer = torch.optim.AdamW(groups, self.settings.learning_rate)
        inputs, labels = run.training.inputs, run.training.known_labels()
        self.updates = self.settings.epochs * sum(1 for _ in self.batches(inputs, labels))
        self.schedule = transformers.get_linear_schedule_with_warmup(
            self.optimizer, int(0.1 * self.updates), self.updates
        )

    @abc.abstractmethod
    def load(self):
        """The model."""

    @abc.abstractmethod
    def batches(self, inputs, labels):
        """Yield tensors of batches, labels among them."""

    @abc.abstractmethod
    def predict(self, inputs) -> list:
        """What the benchmark scores."""

    def train(self, inputs, labels):
        """Train an epoch."""
        self.model.train()
        for batch in self.batches(inputs, labels):
            if self.settings.same_draws:
                self.torch.manual_seed(drawn_by(self.seed, self.update))
            self.update += 1
            loss = self.model(**batch).loss
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()

    def save(self, folder):
        """Write the checkpoint down that training starts from, its head named as ours is."""
        names = dict(enumerate(getattr(self.benchmark, "labels", ())))
        if names:
            self.model.config.id2label = names
            self.model.config.label2id = {name: number for number, name in names.items()}
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def drawn_by(seed: int, update: int) -> int:
    """What PyTorch's generator starts from in an update."""
    return 1_000_003 * seed + update


def same_draws(seed: int):
    """A callback by which dropout on PyTorch draws what transformers' does."""
    import keras
    import torch

    class SameDraws(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            torch.manual_seed(drawn_by(seed, int(self.model.optimizer.iterations)))

    return SameDraws()


def set_products(name: str | None) -> None:
    """Choose how PyTorch computes matrix products of float32; None leaves them alone."""
    if name == "onednn":
        from keras_bert3.training.torch_products import use_onednn

        use_onednn()
    elif name == "bfloat16":
        import torch

        torch.set_float32_matmul_precision("medium")


def linear_schedule(peak: float, updates: int):
    """The rate of transformers' `get_linear_schedule_with_warmup`, without the jump of BERT's."""
    from keras import ops

    from keras_bert3.training.schedules import WarmupLinearDecay

    class Linear(WarmupLinearDecay):
        def rate(self, step, warming, share):
            falling = (1.0 - share) / (1.0 - self.warmup_steps / self.total_steps)
            return ops.where(step < self.warmup_steps, warming, falling)

    return Linear(peak, int(0.1 * updates), updates)


def parts(size: int, *columns):
    """Yield `size` rows of each column at a time."""
    for begin in range(0, len(columns[0]), size):
        yield tuple(column[begin : begin + size] for column in columns)
