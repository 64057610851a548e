"""Level of the independence test: how often it rejects where x and y are independent.

    python tests/benchmarks/level_independence.py [--repetitions 2000] [--case "n = 12, d = 1"] [--test auto]

For each case the share of p-values up to 0.05, 0.01 and 0.005, and a mark beside those above the 99.9 % bound of a
binomial. Permutation p-values stay at or below the level but for chance; ties make them reject less. Those by moments
are approximate.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from level import shares

from kerntest import DataWarning, KerntestError, hsic_test


def normal(n, d):
    return lambda rng: (rng.normal(size=(n, d)), rng.normal(size=(n, d)))


def levels(n, count):
    """Two independent columns of text with so many levels."""
    names = np.array([f"level {place}" for place in range(count)])
    return lambda rng: (names[rng.integers(0, count, n)], names[rng.integers(0, count, n)])


CASES = {
    "n = 100, d = 1": normal(100, 1),
    "n = 100, d = 10": normal(100, 10),
    "n = 100, d = 100": normal(100, 100),
    "n = 12, d = 1": normal(12, 1),
    "n = 12, two levels": levels(12, 2),
    "n = 60, two levels": levels(60, 2),
    "n = 60, five levels": levels(60, 5),
    "n = 60, rounded to whole numbers (ties)": lambda rng: (rng.normal(size=60).round(), rng.normal(size=60).round()),
    "n = 60, heavy tails (Cauchy)": lambda rng: (rng.standard_cauchy(60), rng.standard_cauchy(60)),
}
TESTS = {"auto": {}, "moments": {"null": "moments"}}


def p_value(x, y, options):
    """Return a p-value; 1 where a column is constant by chance, so that nothing can be tested."""
    try:
        return hsic_test(*map(table, (x, y)), threads=1, **options).p_value
    except KerntestError as error:
        if error.code in {"data.no_columns", "undecided.degenerate_kernel"}:
            return 1.0
        raise


def table(values):
    import pandas as pd

    return pd.DataFrame({"level": values}) if values.dtype.kind == "U" else values


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
                p[repetition] = p_value(x, y, {"seed": repetition, **TESTS[test]})
            print(f"  {test:26} {shares(p)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
