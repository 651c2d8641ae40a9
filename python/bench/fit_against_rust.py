"""A fit of a million rows in Python and in Rust, in turns, and by how much each grows its process.

Run by `cargo xtask bench python`, which builds both sides with optimisation.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

OPTIONS = ["--task", "classification", "--epsilon", "1", "--delta", "1e-7", "--seed", "3"]
PYTHON = """
import json, sys, time, warnings
import numpy as np, semidp
warnings.simplefilter("ignore")
private, public = (np.load(path) for path in sys.argv[1:3])
X, y = np.ascontiguousarray(private[:, :-1]), private[:, -1].copy()
del private

def peak():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    return float(line.split()[1]) / 1024

# What reading the files took at most is not of interest.
open("/proc/self/clear_refs", "w").write("5")
before, begun = peak(), time.perf_counter()
model = semidp.LogisticRegression(epsilon=1.0, delta=1e-7, random_state=3, copy_X="copy" in sys.argv)
model.fit(X, y, X_public=public[:, :-1], y_public=public[:, -1])
print(time.perf_counter() - begun, peak() - before, json.loads(model.model_)["weights"][0])
"""


def main(rust: str, rows: int = 1_000_000, columns: int = 100, rounds: int = 3) -> None:
    draw = np.random.default_rng(0)
    weights = draw.normal(size=columns) / 10
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, count in (("private", rows), ("public", 2000)):
            table = np.empty((count, columns + 1), dtype=np.float32)
            table[:, :-1] = draw.standard_normal(size=(count, columns), dtype=np.float32)
            table[:, -1] = table[:, :-1] @ weights + draw.logistic(size=count) > 0
            files.append(str(Path(folder) / f"{name}.npy"))
            np.save(files[-1], table)
        print(f"{rows:,} rows of {columns} columns in single precision: {rows * columns * 4 / 2**20:.0f} MiB; {rounds} rounds in turns")
        for words in ([], ["copy"]):
            sides: dict[str, list[tuple[float, float, float]]] = {"Rust": [], "Python": []}
            for _ in range(rounds):
                for side, command in (
                    ("Rust", [rust, *files, *words, "--", *OPTIONS]),
                    ("Python", [sys.executable, "-c", PYTHON, *files, *words]),
                ):
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode != 0:
                        sys.exit(f"{side}: {done.stderr}")
                    seconds, grown, weight = map(float, done.stdout.split())
                    sides[side].append((seconds, grown, weight))
            assert {entry[2] for side in sides.values() for entry in side} == {sides["Rust"][0][2]}, "another model"
            times = {side: median(entry[0] for entry in entries) for side, entries in sides.items()}
            grown_by = {side: median(entry[1] for entry in entries) for side, entries in sides.items()}
            print(
                f"{'with a copy of the kernel’s own (copy_X=True)' if words else 'read where they lie (the default)':>45}: "
                f"Rust {times['Rust']:.2f} s, +{grown_by['Rust']:.0f} MiB; Python {times['Python']:.2f} s, +{grown_by['Python']:.0f} MiB; "
                f"ratio of times {times['Python'] / times['Rust']:.3f}"
            )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
