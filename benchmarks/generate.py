"""Time `CausalLM.generate` beside OpenAIGPT of Hugging Face transformers, on the same weights.

    KERAS_BACKEND=jax python benchmarks/generate.py
        A batch of 8 prompts, 128 new tokens each, chosen greedily.

    KERAS_BACKEND=torch taskset -c 0 python benchmarks/generate.py --repeats 7
        The same on one core, which every backend then has alike.

Both write in turn (ours, theirs, ours, ...), so that whatever else the machine does meets both; the
medians are compared. Our first call, which compiles, is timed apart. transformers runs on PyTorch
whatever our backend is. Its OpenAIGPT keeps no keys and values: it reads the whole row for each
new token.
"""

import dataclasses
import statistics
import sys
import tempfile
import time


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a comparison."""

    num_layers: int = 4
    """Blocks of the model."""
    hidden_dim: int = 256
    """Width; a head is 64 wide."""
    vocabulary_size: int = 8000
    """Rows of the token table."""
    batch_size: int = 8
    """Prompts."""
    prompt_length: int = 16
    """Tokens of a prompt, so that no padding is needed and both see the same."""
    new_tokens: int = 128
    """Tokens written after each prompt."""
    repeats: int = 5
    """Timed calls of each."""
    processor_time: bool = False
    """Compare the processors' time, where other programs use the machine too."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def make_models(config: Config, folder: str):
    """Return their model and ours, of the same random weights."""
    import torch
    import transformers

    from keras_bert3 import CausalLM

    torch.manual_seed(0)
    sizes = transformers.OpenAIGPTConfig(
        vocab_size=config.vocabulary_size,
        n_positions=config.prompt_length + config.new_tokens,
        n_embd=config.hidden_dim,
        n_layer=config.num_layers,
        n_head=max(1, config.hidden_dim // 64),
    )
    theirs = transformers.OpenAIGPTLMHeadModel(sizes).eval()
    with torch.no_grad():  # spread the scores, so that the likeliest token is no close call
        for parameter in theirs.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)
    theirs.save_pretrained(folder)
    return theirs, CausalLM.from_preset(folder)


def timed(function) -> tuple[float, list[list[int]]]:
    """Seconds of a call, and its result."""
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def busy(function) -> tuple[float, list[list[int]]]:
    """Seconds of the processors in a call, which other programs do not lengthen; its result."""
    begin = time.process_time()
    result = function()
    return time.process_time() - begin, result


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Run the comparison; return medians in seconds, and the share of rows that are equal."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    import keras
    import numpy as np
    import torch

    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = make_models(config, folder)
    shape = config.batch_size, config.prompt_length
    prompts = np.random.default_rng(0).integers(1, config.vocabulary_size, shape)
    length = config.prompt_length + config.new_tokens
    ids = torch.tensor(prompts)

    def write_ours():
        return ours.generate(prompts.tolist(), length)

    def write_theirs(new_tokens=config.new_tokens):
        with torch.no_grad():
            return theirs.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                do_sample=False,
                pad_token_id=0,
            ).tolist()

    compiled = timed(write_ours)[0]
    write_theirs(2)  # whatever they do once
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    written = {}
    for _ in range(config.repeats):
        for name, function in (("ours", write_ours), ("theirs", write_theirs)):
            clock = busy if config.processor_time else timed
            taken, written[name] = clock(function)
            seconds[name].append(taken)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    equal = np.mean([a == b for a, b in zip(written["ours"], written["theirs"], strict=True)])
    print(f"{config}\nbackend {keras.backend.backend()}: first call {compiled:.2f} s")
    for name, values in seconds.items():
        print(f"{name:7s} median {medians[name]:.3f} s  of {[round(v, 3) for v in values]}")
    print(f"ratio   {medians['theirs'] / medians['ours']:.2f}   equal rows {equal:.0%}")
    return {**medians, "first_call": compiled, "equal": float(equal)}


if __name__ == "__main__":
    main()
