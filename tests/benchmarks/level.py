"""Level of the test: how often it rejects where nothing differs.

    python tests/benchmarks/level.py [--repetitions 2000] [--case "m = n = 5"]

For each case the share of p-values up to 0.05 and 0.01, with the standard error of the first. Exact tests stay at or
below the level but for chance; ties make them reject less.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from kerntest import mmd_test

CASES = {
    "m = n = 5": lambda rng: (rng.normal(size=(5, 2)), rng.normal(size=(5, 2))),
    "m = n = 50, d = 3": lambda rng: (rng.normal(size=(50, 3)), rng.normal(size=(50, 3))),
    "m = n = 100 (n = 200)": lambda rng: (rng.normal(size=(100, 2)), rng.normal(size=(100, 2))),
    "m = n = 50, d = 100": lambda rng: (rng.normal(size=(50, 100)), rng.normal(size=(50, 100))),
    "m = 5, n = 200": lambda rng: (rng.normal(size=(5, 2)), rng.normal(size=(200, 2))),
    "rounded to whole numbers (ties)": lambda rng: (rng.normal(size=(40, 2)).round(), rng.normal(size=(60, 2)).round()),
    "two values": lambda rng: (rng.integers(0, 2, 50).astype(float), rng.integers(0, 2, 50).astype(float)),
    "heavy tails (Cauchy)": lambda rng: (rng.standard_cauchy(size=(50, 2)), rng.standard_cauchy(size=(50, 2))),
}
TESTS = {
    "auto": {},
    "gaussian at the median": {"kernel": "gaussian", "bandwidth": "median"},
    "the same, moments": {"kernel": "gaussian", "bandwidth": "median", "null": "moments"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be given again")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions
    error = math.sqrt(0.05 * 0.95 / repetitions)
    for case in arguments.case or CASES:
        draw = CASES[case]
        print(f"\n{case}")
        for test, options in TESTS.items():
            p = np.empty(repetitions)
            for repetition in range(repetitions):
                x, y = draw(np.random.default_rng((7, repetition)))
                p[repetition] = mmd_test(x, y, seed=repetition, threads=1, **options).p_value
            print(
                f"  {test:26} p <= 0.05: {np.mean(p <= 0.05):.4f} (+- {error:.4f})   p <= 0.01: {np.mean(p <= 0.01):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
