"""Pretrain BERT, GPT-1 or DeBERTa from raw text.

    KERAS_BACKEND=jax python recipes/pretrain.py
        A vocabulary and a small BERT from Python's own documentation; minutes on two CPU cores.
        `--backbone gpt`, `--backbone deberta`: the same for the others.

    python recipes/pretrain.py --data 'books/*.txt' --steps 20000
        The same from your text.

    python recipes/pretrain.py bert-base --data wikipedia/ --vocabulary vocab.txt
        The sizes and numbers of Devlin et al. 2018.

Nine tenths of the steps see sequences of `sequence_length`, the last tenth of
`long_sequence_length`, under one learning-rate schedule and one count of steps.
"""

import dataclasses
import sys
import time


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a run. A flag overrides a preset, a preset these defaults."""

    backbone: str = "bert"
    """bert, gpt, lstm (GPT-1's ablation) or deberta."""
    objective: str | None = None
    """bert: mlm+nsp, mlm or ltr (left to right, an ablation). gpt, lstm: lm. deberta: mlm or rtd
    (replaced-token detection). None: the first of these."""
    data: tuple[str, ...] = ()
    """Files, folders or globs of UTF-8 text. Empty: the documentation that comes with Python."""
    data_format: str = "paragraphs"
    """paragraphs: lines are split into sentences. sentences: a line is one. jsonl: {"text": ...}.
    In the first two, blank lines part documents."""
    vocabulary: str | None = None
    """A vocab.txt (gpt: a folder with vocab.json and merges.txt). None: learn one from the data."""
    vocabulary_size: int = 2000
    """Tokens (gpt: merges) to learn, when learning a vocabulary."""
    lowercase: bool = True
    """Lower-case the text and strip accents ("uncased")."""
    size: str = "micro"
    """micro (for a CPU), layers x width such as 4x256, or a name in
    keras_bert3/backbones/sizes.py."""
    dropout: float = 0.0
    """Rate on embeddings, sublayers and attention (paper: 0.1)."""
    masking: str = "tokens"
    """What is masked together: tokens (one by one), whole_words or, for deberta, n_grams."""
    mask_mix: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """bert: shares of the chosen tokens that become [MASK], stay, or become another (paper)."""
    without: tuple[str, ...] = ()
    """deberta: parts to leave out, emd (the enhanced mask decoder), c2p or p2c (terms of the
    attention)."""
    num_duplicates: int = 10
    """Walks over the corpus that cut it into examples (published script: 10)."""
    sequence_length: int = 32
    """Tokens in a sequence, first phase (paper: 128)."""
    long_sequence_length: int = 128
    """Tokens in a sequence, second phase (paper: 512)."""
    long_fraction: float = 0.1
    """Share of the steps in the second phase (paper: 0.1)."""
    mesh: str | None = None
    """Devices: data=8 (eight copies of the model), data=4,model=2 (JAX: each cut in two). None: one
    device, or all that several processes have; see docs/distribution.md."""
    processes: str | None = None
    """JAX: host:port,number,index of the processes of a run, or auto, as the cluster says. None: as
    the environment says (torchrun's on PyTorch, TF_CONFIG on TensorFlow)."""
    accumulate: int = 1
    """Parts that a batch is cut into, one after another, so that it fits into memory."""
    remat: bool = False
    """Compute the insides of blocks again for the gradient: less memory, a third more time."""
    batch_size: int = 32
    """Sequences in a step of the first phase (paper: 256)."""
    long_batch_size: int | None = None
    """Sequences in a step of the second phase. None: as many tokens as in the first."""
    steps: int = 1200
    """Updates over both phases (paper: 1,000,000)."""
    learning_rate: float = 1e-3
    """Peak rate (paper: 1e-4)."""
    warmup_steps: int = 100
    """Updates of linear warm-up, before linear decay to 0 (paper: 10,000)."""
    weight_decay: float = 0.01
    """Decoupled decay of kernels and tables (paper: 0.01)."""
    held_out: float = 0.05
    """Share of the documents kept for the evaluation at the end."""
    dtype_policy: str = "float32"
    """float32, mixed_bfloat16 or mixed_float16."""
    log_every: int = 100
    """Steps between two rows of metrics.csv."""
    presets_every: int | None = None
    """Steps between two presets that are kept, a multiple of log_every. None: only the last is."""
    seed: int = 12345
    """Of everything random (published script: 12345)."""
    output: str | None = None
    """Directory of the run: new, empty, or an unfinished run of the same settings, which goes on.
    None: runs/pretrain-<time>."""


PAPER = Config(
    size="base_uncased", vocabulary_size=30522, dropout=0.1, sequence_length=128,
    long_sequence_length=512, batch_size=256, long_batch_size=256, steps=1_000_000,
    learning_rate=1e-4, warmup_steps=10_000, log_every=1000, held_out=0.001,
)  # fmt: skip
GPT_MICRO = Config(
    backbone="gpt", sequence_length=64, long_sequence_length=64, long_fraction=0.0, batch_size=16,
    learning_rate=2e-3, steps=600, warmup_steps=60,
)  # fmt: skip
GPT_PAPER = Config(
    backbone="gpt", size="base", vocabulary_size=40_000, dropout=0.1, sequence_length=512,
    long_sequence_length=512, long_fraction=0.0, batch_size=64, steps=3_000_000,
    learning_rate=2.5e-4, warmup_steps=2000, log_every=1000, held_out=0.001,
)  # fmt: skip
DEBERTA_MICRO = Config(backbone="deberta", masking="n_grams")
RTD_MICRO = dataclasses.replace(  # at twice the rate a generator that sees [MASK] alone learns less
    DEBERTA_MICRO, objective="rtd", steps=800, learning_rate=4e-4,
)  # fmt: skip
DEBERTA_PAPER = dataclasses.replace(
    PAPER, backbone="deberta", size="base", vocabulary_size=50_000, masking="n_grams",
    sequence_length=512, long_fraction=0.0, batch_size=2048, learning_rate=2e-4,
)  # fmt: skip
# Where none is named, the first is taken of those that fit the flags.
PRESETS = {
    "micro": ("a BERT of two layers of 128, for a CPU", Config()),
    "bert-base": ("Devlin et al. 2018, BERT base", PAPER),
    "bert-large": ("BERT large", dataclasses.replace(PAPER, size="large_uncased")),
    "gpt-micro": ("a GPT-1 of two layers of 128, for a CPU", GPT_MICRO),
    "lstm-micro": ("GPT-1's ablation", dataclasses.replace(GPT_MICRO, backbone="lstm")),
    "deberta-micro": ("a DeBERTa of two layers of 128, for a CPU", DEBERTA_MICRO),
    "deberta-rtd-micro": ("such a DeBERTa and its generator, as v3", RTD_MICRO),
    "deberta-base": ("He et al. 2021, DeBERTa base", DEBERTA_PAPER),
    "gpt-base": ("Radford et al. 2018: some 100 epochs of BooksCorpus", GPT_PAPER),
}


def parse(arguments: list[str]) -> Config:
    """Read the command line; where no preset is named, the flags choose one."""
    import tyro

    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = [smallest_preset(arguments), *arguments]
    return tyro.extras.overridable_config_cli(PRESETS, args=arguments, description=__doc__)


def smallest_preset(arguments: list[str]) -> str:
    """Return the first preset of the backbone, if any fits of the objective too, in `arguments`."""
    words = " ".join(arguments).replace("=", " ").split()
    given = dict(zip(words, words[1:], strict=False))
    backbone, objective = given.get("--backbone", "bert"), given.get("--objective")
    fitting = [name for name, (_, config) in PRESETS.items() if config.backbone == backbone]
    exact = [name for name in fitting if PRESETS[name][1].objective == objective]
    return [*exact, *fitting, *PRESETS][0]


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Run the recipe; return the final evaluation."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    import keras

    from keras_bert3.runs import pretraining, scaling

    pretraining.check(config)
    course = pretraining.course_of(config)
    scale = pretraining.start(config)
    keras.utils.set_random_seed(config.seed)
    keras.config.set_dtype_policy(config.dtype_policy)
    output = config.output or time.strftime("runs/pretrain-%Y%m%d-%H%M%S")
    with scaling.shared_run(output, config, scale) as run:
        tokenizer = course.make_tokenizer(config)
        corpus = pretraining.make_corpus(run, config, tokenizer)
        phases = course.make_phases(run, config, corpus, tokenizer)
        trained = scaling.make_task(run, course, config, tokenizer, scale)
        pretraining.train(run, config, trained, phases, scale)
        task = scaling.on_one_device(course, config, tokenizer, trained, scale)
        if task is None:  # another process goes on
            return {}
        task.save_to_preset(run / "preset")
        return course.report(run, config, task, corpus, phases)


if __name__ == "__main__":
    main()
