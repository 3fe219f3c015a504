"""End a pretraining run at random moments, give its command again, and compare the last bits.

    KERAS_BACKEND=jax python benchmarks/resume_after_kills.py --kills 20 --terms 4

One run is left alone. Another of the same settings gets SIGKILL again and again: every other time
at any moment from its start to its first checkpoint, else right after that, so that it gets on.
Then it gets SIGTERM some times, and is left to end. The last checkpoints of both, which hold
weights, moments and the states of random generators, must be equal, bit for bit. With
`--processes 2` (JAX), one of two is killed, and the other must end by itself. Two that lose each
other, because the machine does not let them run, are started again without counting as killed.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = ["the cat sees a tree .", "my friend finds some bread .", "a bird follows the dog ."]


def command(folder: Path, data: Path, steps: int, flags: list[str]) -> list[str]:
    """The recipe on a small text, with dropout."""
    settings = {
        "--data": data, "--data-format": "sentences", "--vocabulary-size": 60, "--steps": steps,
        "--log-every": 5, "--batch-size": 8, "--warmup-steps": 5, "--num-duplicates": 2,
        "--long-fraction": 0, "--dropout": 0.1, "--output": folder,
    }  # fmt: skip
    return [
        sys.executable,
        str(ROOT / "recipes" / "pretrain.py"),
        *(str(part) for pair in settings.items() for part in pair),
        *flags,
    ]


def start(arguments: list[str], count: int) -> list[subprocess.Popen]:
    """Start the processes of a run; those beyond one find each other through a port."""
    environment = {**os.environ}
    if count > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        environment |= {
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": address,
            "KERAS_DISTRIBUTION_NUM_PROCESSES": str(count),
        }
    return [
        subprocess.Popen(
            arguments,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**environment, "KERAS_DISTRIBUTION_PROCESS_ID": str(k)},
        )
        for k in range(count)
    ]


def run(arguments, count, checkpoints=None, ending=signal.SIGKILL, wait=None) -> str:
    """Run until it is "finished", "ended" by a signal, or two processes have "lost" each other.

    With `wait`, the signal comes after so many seconds, or two new checkpoints if those are sooner;
    without, after one.
    """
    children = start(arguments, count)
    if checkpoints is not None:
        before, started = set(checkpoints.glob("step-*")), time.time()
        while children[0].poll() is None:
            time.sleep(0.01)
            is_due = wait is not None and time.time() - started > wait
            new = set(checkpoints.glob("step-*")) - before
            if is_due or len(new) > (wait is not None):
                break
        time.sleep(random.uniform(0, 0.05))
        random.choice(children).send_signal(ending)
        if count > 1 and ending == signal.SIGTERM:  # a cluster tells them all
            for child in children:
                child.send_signal(ending)
    sent = time.time()
    errors = [child.communicate()[1].decode()[-3000:] for child in children]
    if checkpoints is not None:
        print(f"all ended {time.time() - sent:.0f} s after {ending.name}; ", end="")
    codes = [child.returncode for child in children]
    if all(code == 0 for code in codes):
        return "finished"
    if {-ending, 128 + ending} & set(codes) and checkpoints is not None:
        return "ended"
    if count > 1 and set(codes) <= {1, -signal.SIGABRT}:
        print(f"lost each other, exit codes {codes}", flush=True)
        return "lost"
    raise SystemExit(f"exit codes {codes}\n" + "\n".join(errors))


def persist(*arguments) -> str:
    """`run`, again where two processes have lost each other."""
    outcome = "lost"
    while outcome == "lost":
        outcome = run(*arguments)
    return outcome


def state(folder: Path) -> dict[str, np.ndarray]:
    """Every array of the last checkpoint of a run."""
    return load_file(max((folder / "checkpoints").glob("step-*")) / "state.safetensors")


def main() -> None:
    """Compare a run that was ended again and again with one that was left alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--terms", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    options, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "corpus.txt"
        rng = random.Random(0)
        documents = ("\n".join(rng.choices(SENTENCES, k=12)) for _ in range(12))
        data.write_text("\n\n".join(documents) + "\n")
        whole, again = (
            command(folder / n, data, options.steps, flags) for n in ("whole", "killed")
        )
        started = time.time()
        persist(whole, options.processes)
        print(f"left alone: {time.time() - started:.0f} s", flush=True)
        checkpoints = folder / "killed" / "checkpoints"
        endings = [signal.SIGKILL] * options.kills + [signal.SIGTERM] * options.terms
        counts, until_saved = dict.fromkeys(endings, 0), 0.0
        for number, ending in enumerate(endings):
            anywhere = number % 2 and ending == signal.SIGKILL
            wait = random.uniform(0, 1.05 * until_saved) if anywhere else None
            started = time.time()
            if persist(again, options.processes, checkpoints, ending, wait) == "finished":
                break
            until_saved = until_saved if anywhere else time.time() - started
            counts[ending] += 1
            reached = max((p.name for p in checkpoints.glob("step-*")), default="none")
            print(f"{ending.name} {counts[ending]}: {reached}", flush=True)
        else:
            persist(again, options.processes)
        first, second = state(folder / "whole"), state(folder / "killed")
        equal = [np.array_equal(first[n], second[n], equal_nan=True) for n in first]
        print(", ".join(f"{count} {ending.name}" for ending, count in counts.items()))
        print(f"{sum(equal)} of {len(first)} arrays equal, bit for bit", flush=True)
        raise SystemExit(0 if all(equal) and first.keys() == second.keys() else 1)


if __name__ == "__main__":
    main()
