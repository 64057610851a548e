"""Level of the test: how often it rejects where nothing differs.

    python tests/benchmarks/level.py [--repetitions 2000] [--case "m = n = 5"] [--test auto]

For each case the share of p-values up to 0.05, 0.01 and 0.005, and a mark beside those above the 99.9 % bound of a
binomial. Exact tests stay at or below the level but for chance; ties make them reject less.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.stats import binom

from kerntest import DataWarning, mmd_test

CASES = {
    "m = n = 5": lambda rng: (rng.normal(size=(5, 2)), rng.normal(size=(5, 2))),
    "m = n = 6": lambda rng: (rng.normal(size=(6, 3)), rng.normal(size=(6, 3))),
    "m = 5, n = 400": lambda rng: (rng.normal(size=(5, 3)), rng.normal(size=(400, 3))),
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


def shares(p):
    """Return how often p-values are up to each level, with a mark above the 99.9 % bound of a binomial."""
    told = []
    for level in (0.05, 0.01, 0.005):
        count = int(np.sum(p <= level + 1e-12))
        mark = " !" if binom.sf(count - 1, len(p), level) < 0.0005 else ""
        told.append(f"p <= {level:g}: {count / len(p):.4f}{mark}")
    return "   ".join(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be given again")
    parser.add_argument("--test", action="append", choices=list(TESTS), help="only this one; may be given again")
    arguments = parser.parse_args()
    for case in arguments.case or CASES:
        print(f"\n{case}")
        for test in arguments.test or TESTS:
            p = np.empty(arguments.repetitions)
            for repetition in range(arguments.repetitions):
                x, y = CASES[case](np.random.default_rng((7, repetition)))
                p[repetition] = mmd_test(x, y, seed=repetition, threads=1, **TESTS[test]).p_value
            print(f"  {test:26} {shares(p)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
