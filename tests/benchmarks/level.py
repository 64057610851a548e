"""Level: how often the tests reject where nothing differs, or nothing depends.

    python tests/benchmarks/level.py [mmd hsic cluster paired strata] [--repetitions 2000] [--only "m = n = 5"] [--test auto]

For each case the share of p-values up to 0.05, 0.01 and 0.005, and a mark beside those above the 99.9 % bound of a
binomial. Exact tests stay at or below the level but for chance; ties make them reject less. Those by moments are approximate.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from measure import parser_of
from scipy.stats import binom

from kerntest import DataWarning, KerntestError, hsic_test, mmd_test


def normal(m, n, d):
    return lambda rng: (rng.normal(size=(m, d)), rng.normal(size=(n, d)))


def levels(n, count):
    """Two columns of text with so many levels."""
    names = np.array([f"level {place}" for place in range(count)])
    return lambda rng: tuple(pd.DataFrame({"level": names[rng.integers(0, count, n)]}) for _ in range(2))


def clusters(count, low, high):
    """Two samples of so many clusters in all, of low to high rows each, that are alike within: 9 parts of 10 are shared."""

    def draw(rng):
        made = []
        for first in (0, count):
            sizes = rng.integers(low, high + 1, count // 2)
            rows = np.repeat(rng.normal(size=(len(sizes), 2)), sizes, axis=0)
            rows = 0.9**0.5 * rows + 0.1**0.5 * rng.normal(size=rows.shape)
            who = np.repeat(np.arange(len(sizes)) + first, sizes)
            made.append(pd.DataFrame({"who": who, "u": rows[:, 0], "v": rows[:, 1]}))
        return made

    return draw


def pairs(rng):
    """Two measurements of 60 cases, of which 9 parts of 10 are shared."""
    cases = 0.9**0.5 * rng.normal(size=(60, 2))
    made = [cases + 0.1**0.5 * rng.normal(size=cases.shape) for _ in range(2)]
    return [pd.DataFrame({"who": np.arange(60), "u": one[:, 0], "v": one[:, 1]}) for one in made]


def strata(rng):
    """Two samples of the same five strata, mixed in other shares."""
    made = [rng.choice(5, size=150, p=one) for one in ([0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.3, 0.3])]
    return [pd.DataFrame({"who": one, "u": one + rng.normal(size=len(one))}) for one in made]


AT_THE_MEDIAN = {"kernel": "gaussian", "bandwidth": "median"}
TESTS = {
    "mmd": {"auto": {}, "median": AT_THE_MEDIAN, "median, moments": {**AT_THE_MEDIAN, "null": "moments"}},
    "hsic": {
        "auto": {},
        "moments": {"null": "moments"},
        **{name: {"statistic": name} for name in ("coco", "kcc", "kmi")},
    },
    **{
        name: {f"--{name}": {name: "who", **AT_THE_MEDIAN}, "without": {"exclude": "who", **AT_THE_MEDIAN}}
        for name in ("cluster", "paired", "strata")
    },
}
CASES = {
    "mmd": {
        **{
            f"m = {m}, n = {n}, d = {d}": normal(m, n, d)
            for m, n, d in ((5, 5, 2), (6, 6, 3), (50, 50, 3), (100, 100, 2))
        },
        **{f"m = {m}, n = {n}, d = {d}": normal(m, n, d) for m, n, d in ((50, 50, 100), (5, 200, 2), (5, 400, 3))},
        "whole numbers (ties)": lambda rng: (rng.normal(size=(40, 2)).round(), rng.normal(size=(60, 2)).round()),
        "two values": lambda rng: (rng.integers(0, 2, 50).astype(float), rng.integers(0, 2, 50).astype(float)),
        "heavy tails (Cauchy)": lambda rng: (rng.standard_cauchy(size=(50, 2)), rng.standard_cauchy(size=(50, 2))),
    },
    "hsic": {
        **{f"n = {n}, d = {d}": normal(n, n, d) for n, d in ((100, 1), (100, 10), (100, 100), (12, 1))},
        **{f"n = {n}, {count} levels": levels(n, count) for n, count in ((12, 2), (60, 2), (60, 5))},
        "n = 60, whole numbers (ties)": lambda rng: (rng.normal(size=60).round(), rng.normal(size=60).round()),
        "n = 60, heavy tails (Cauchy)": lambda rng: (rng.standard_cauchy(60), rng.standard_cauchy(60)),
    },
    "cluster": {"24 clusters of 20": clusters(24, 20, 20), "200 clusters of 1 to 9": clusters(200, 1, 9)},
    "paired": {"60 pairs": pairs},
    "strata": {"5 strata in other shares": strata},
}


def p_value(question, x, y, **options):
    """A p-value; 1 where a column is constant by chance, so that nothing can be tested."""
    try:
        return (hsic_test if question == "hsic" else mmd_test)(x, y, threads=1, **options).p_value
    except KerntestError as error:
        if error.code in {"data.no_columns", "undecided.degenerate_kernel"}:
            return 1.0
        raise


def shares(p):
    """How often p-values are up to each level, with a mark above the 99.9 % bound of a binomial."""
    told = []
    for level in (0.05, 0.01, 0.005):
        count = int(np.sum(p <= level + 1e-12))
        mark = " !" if binom.sf(count - 1, len(p), level) < 0.0005 else ""
        told.append(f"p <= {level:g}: {count / len(p):.4f}{mark}")
    return "   ".join(told)


def main():
    parser = parser_of(__doc__)
    parser.add_argument(
        "questions", nargs="*", metavar="TEST", help="mmd, hsic, cluster, paired, strata; all by default"
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--only", default="", help="cases with this text alone")
    parser.add_argument("--test", help="only this one")
    arguments = parser.parse_args()
    for question in arguments.questions or TESTS:
        for case, draw in CASES[question].items():
            if arguments.only not in case:
                continue
            print(f"\n{question}, {case}")
            for test, how in TESTS[question].items():
                if arguments.test in {None, test}:
                    p = [
                        p_value(question, *draw(np.random.default_rng((7, repetition))), seed=repetition, **how)
                        for repetition in range(arguments.repetitions)
                    ]
                    print(f"  {test:26} {shares(np.array(p))}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
