"""Kill a pretraining run at random moments, give its command again, and compare the last bits.

    KERAS_BACKEND=jax python benchmarks/resume_after_kills.py --kills 20

One run is left alone, another of the same settings is killed by SIGKILL again and again, each time
a random while after it has written a checkpoint, before it is left to end. All weights of the two
presets must be equal, bit for bit.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = ["the cat sees a tree .", "my friend finds some bread .", "a bird follows the dog ."]


def command(folder: Path, data: Path, steps: int) -> list[str]:
    """The recipe on a small text, with dropout."""
    flags = {
        "--data": data, "--data-format": "sentences", "--vocabulary-size": 60, "--steps": steps,
        "--log-every": 10, "--batch-size": 8, "--warmup-steps": 5, "--num-duplicates": 2,
        "--dropout": 0.1, "--output": folder,
    }  # fmt: skip
    return [
        sys.executable,
        str(ROOT / "recipes" / "pretrain.py"),
        *(str(part) for pair in flags.items() for part in pair),
    ]


def run(arguments: list[str], checkpoints: Path | None = None) -> bool:
    """Run to the end, or to a random while after a new checkpoint; whether it ended by itself."""
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    if checkpoints is not None:
        before = set(checkpoints.glob("step-*"))
        while child.poll() is None and not set(checkpoints.glob("step-*")) - before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.5))
        child.kill()
    _, errors = child.communicate()
    if child.returncode > 0:
        raise SystemExit(errors.decode()[-3000:])
    return child.returncode == 0


def weights(folder: Path) -> dict[str, np.ndarray]:
    """Every array of a run's preset."""
    found: dict[str, np.ndarray] = {}
    with h5py.File(folder / "preset" / "model.weights.h5") as file:
        file.visititems(
            lambda n, x: found.update({n: x[()]} if isinstance(x, h5py.Dataset) else {})
        )
    return found


def main() -> None:
    """Compare a killed run with one that was left alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "corpus.txt"
        rng = random.Random(0)
        documents = ("\n".join(rng.choices(SENTENCES, k=12)) for _ in range(12))
        data.write_text("\n\n".join(documents) + "\n")
        run(command(folder / "whole", data, options.steps))
        again, checkpoints = folder / "killed", folder / "killed" / "checkpoints"
        kills = 0
        while kills < options.kills and not run(command(again, data, options.steps), checkpoints):
            kills += 1
            print(f"kill {kills}: {max(p.name for p in checkpoints.glob('step-*'))}", flush=True)
        if kills == options.kills:
            run(command(again, data, options.steps))
        first, second = weights(folder / "whole"), weights(folder / "killed")
        equal = [np.array_equal(first[name], second[name]) for name in first]
        print(f"{kills} kills; {sum(equal)} of {len(first)} arrays equal, bit for bit")
        raise SystemExit(0 if all(equal) and first.keys() == second.keys() else 1)


if __name__ == "__main__":
    main()
