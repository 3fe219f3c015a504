"""Run the whole suite: once for each backend, and once with TensorFlow hidden.

python -m tests                     everything
python -m tests jax torch           these backends only
python -m tests jax -- -k masks     arguments after -- go to pytest
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HIDDEN = "jax-without-tensorflow"
RUNS = ("jax", "torch", "tensorflow", HIDDEN)
# Text, files and numbers alone, no backend: the first run of several has them, and the hidden one.
WITHOUT_MODELS = ("tests/benchmarks", "tests/data", "tests/tokenizers")
# Every module imported, and the units below; the rooms left out compute as they do on JAX above.
HIDDEN_TESTS = tuple(
    f"tests/{name}"
    for name in (
        "test_package.py",
        "benchmarks",
        "data",
        "metrics",
        "objectives",
        "tokenizers",
        "layers",
        "checkpoints",
        "training/test_optimizers.py",
        "tasks/test_causal_lm.py",
        "tasks/test_extractive_qa.py",
        "tasks/test_masked_lm.py",
        "tasks/test_multiple_choice.py",
        "tasks/test_text_classifier.py",
        "tasks/test_text_embedder.py",
        "tasks/test_token_classifier.py",
    )
)


def environment(run: str, cache: str) -> dict[str, str]:
    """Choose the backend; hide TensorFlow by a package of its name that refuses to be imported.

    What JAX compiles is kept in `cache`, so that each program is compiled by one test and one run.
    """
    variables = {
        "KERAS_BACKEND": "jax" if run == HIDDEN else run,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",  # a worker a processor
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    if run == HIDDEN:
        path = [str(ROOT / "tests" / "without_tensorflow"), os.environ.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
    return {**os.environ, **variables}


def main(arguments: list[str]) -> int:
    """Run the chosen parts one after another; return 0 if all passed."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    runs, options = arguments[:split] or list(RUNS), arguments[split + 1 :]
    unknown = sorted(set(runs) - set(RUNS))
    if unknown:
        print(f"Expected backends among {', '.join(RUNS)}. Received: {', '.join(unknown)}")
        return 2
    with tempfile.TemporaryDirectory() as cache:
        results = {run: run_suite(run, options, cache, run == runs[0]) for run in runs}
    print()
    for run, (code, seconds) in results.items():
        print(f"{run:24} {'passed' if code == 0 else f'FAILED (exit {code})'} in {seconds:.0f} s")
    return int(any(code for code, _ in results.values()))


def run_suite(run: str, options: list[str], cache: str, is_first: bool) -> tuple[int, float]:
    """Run pytest in its environment; return its exit code and the seconds it took."""
    print(f"\n=== {run}", flush=True)
    started = time.monotonic()
    # A file's tests stay in one process: they share their models and what is compiled of them.
    command = [sys.executable, "-m", "pytest", "--numprocesses=auto", "--dist=loadfile", *options]
    if run == HIDDEN:
        command += HIDDEN_TESTS
    elif not is_first:
        command += [f"--ignore={room}" for room in WITHOUT_MODELS]
    code = subprocess.run(command, cwd=ROOT, env=environment(run, cache)).returncode
    return code, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
