"""How often each verdict on a margin is given of samples exactly at it, whether intervals cover, and if a shift is found as said.

    python tests/benchmarks/margins.py            verdicts and intervals over the whole square of rows, margins and kinds
    python tests/benchmarks/margins.py shifts     the power of the default test at the smallest shift that it claims

At the margin "same" and "differ" may each be said of at most alpha = 0.05; intervals of 95 % should hold the truth in 90 to 97 % of
the cells where MMD^2 is above four standard errors. The worst cells come last, with the 99.9 % band of the number tried.
"""

import argparse
import sys
import warnings
from collections import Counter

import numpy as np
from scipy.stats import binom

from kerntest import KerntestWarning, mmd_test

ROWS = ((50, 50), (100, 100), (50, 300), (200, 200), (500, 500), (2000, 2000))
MARGINS = (0.1, 0.2, 0.3, 0.4, 0.5)
BANDWIDTHS = {1: 0.95, 2: 1.4, 5: 2.95}
ALPHA, ENOUGH_ERRORS, POWER = 0.05, 4.0, 0.8


def normal(columns, *, shift=0.0, spread=1.0, weight=1.0, along=1):
    """Return a component of a mixture: its weight, means (shifted in the first columns) and standard deviations."""
    return weight, shift * (np.arange(columns) < along), np.full(columns, float(spread))


def two(columns, **moved):
    return [normal(columns)], [normal(columns, **moved)]


KINDS = {
    "a mean": (1, lambda t: two(1, shift=t)),
    "a spread": (1, lambda t: two(1, spread=1 + t)),
    "a few rows far off": (
        1,
        lambda t: (
            [normal(1)],
            [normal(1, weight=1 - min(t / 10, 0.9)), normal(1, shift=4, spread=0.3, weight=min(t / 10, 0.9))],
        ),
    ),
    "one of two, skew": (
        2,
        lambda t: tuple(
            [normal(2, spread=0.4, shift=s, weight=0.7), normal(2, shift=1.5 + s, along=1, weight=0.3)] for s in (0, t)
        ),
    ),
    "one of five": (5, lambda t: two(5, shift=t)),
    "all five": (5, lambda t: two(5, shift=t, along=5)),
    "five spreads": (5, lambda t: two(5, spread=1 + t)),
}


def mean_of_kernel(first, second, bandwidth):
    """Return the mean of a Gaussian kernel between two mixtures of normals."""
    total = 0.0
    for weight, mean, spread in first:
        for other, there, wide in second:
            variance = spread**2 + wide**2 + bandwidth**2
            factor = np.exp(-((mean - there) ** 2) / 2 / variance) * bandwidth / np.sqrt(variance)
            total += weight * other * float(np.prod(factor))
    return total


def mmd_of(first, second, bandwidth):
    own = mean_of_kernel(first, first, bandwidth) + mean_of_kernel(second, second, bandwidth)
    return np.sqrt(max(own - 2 * mean_of_kernel(first, second, bandwidth), 0.0))


def at_margin(kind, margin):
    """Return two mixtures whose MMD is the margin; None where they do not come so far apart."""
    columns, make = KINDS[kind]
    low, high = 0.0, 9.0
    if mmd_of(*make(high), BANDWIDTHS[columns]) < margin:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mmd_of(*make(middle), BANDWIDTHS[columns]) < margin else (low, middle)
    return make(high)


def draw(mixture, rows, rng):
    place = rng.choice(len(mixture), size=rows, p=[weight for weight, *_ in mixture])
    means, spreads = (np.array([one[part] for one in mixture])[place] for part in (1, 2))
    return means + spreads * rng.normal(size=means.shape)


def of_cell(kind, rows, margin, repetitions):
    """Return how often each verdict is given, and of the intervals how many are there and hold the MMD; None without such samples."""
    mixtures = at_margin(kind, margin)
    if mixtures is None:
        return None
    counts = Counter()
    kernel = f"gaussian({BANDWIDTHS[KINDS[kind][0]]})"
    for repetition in range(repetitions):
        rng = np.random.default_rng((1, repetition))
        x, y = (draw(mixture, n, rng) for mixture, n in zip(mixtures, rows, strict=True))
        found = mmd_test(x, y, kernel=kernel, scale="none", margin=margin, permutations=20, threads=1)
        interval = found.interval
        counts[found.margin.verdict] += 1
        counts["errors"] += interval.standard_errors
        if interval.lower is not None:
            counts["given"] += 1
            counts["held"] += interval.lower <= margin <= interval.upper
    return counts


def verdicts(repetitions, largest):
    """Print a line for each cell, and the worst ones."""
    print(
        f"{'what differs':18s} {'rows':>11s} {'D':>4s} {'MMD^2/s.e.':>10s} {'same':>6s} {'differ':>6s} {'given':>6s} {'held':>6s}"
    )
    worst = {"same": (0, ""), "differ": (0, ""), "held": (1, "")}
    for kind in KINDS:
        for rows in (one for one in ROWS if max(one) <= largest):
            count = repetitions if sum(rows) <= 1000 else max(repetitions // 4, 20)
            for margin in MARGINS:
                counts = of_cell(kind, rows, margin, count)
                if counts is None:
                    continue
                cell = f"{kind:18s} {rows[0]:>5d}+{rows[1]:<5d} {margin:4.1f}"
                shares = {name: counts[name] / count for name in ("same", "differ", "given")}
                held = counts["held"] / counts["given"] if counts["given"] else float("nan")
                told = " ".join(f"{share:6.3f}" for share in (*shares.values(), held))
                print(f"{cell} {counts['errors'] / count:10.1f} {told}", flush=True)
                for name in ("same", "differ"):
                    worst[name] = max(worst[name], (shares[name], cell))
                if counts["errors"] / count > ENOUGH_ERRORS and counts["given"] > count / 2:
                    worst["held"] = min(worst["held"], (held, cell))
    band = binom.ppf([0.0005, 0.9995], repetitions, ALPHA) / repetitions
    print(
        f"\nof {repetitions} pairs of samples 99.9 % of correct shares of 0.05 lie between {band[0]:.3f} and {band[1]:.3f}"
    )
    for name, (share, cell) in worst.items():
        print(f"worst {name:7s} {share:.3f}  {cell}")


DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skew": lambda rng, shape: rng.exponential(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape) / np.sqrt(3),
    "two humps": lambda rng, shape: (0.4 * rng.normal(size=shape) + 2 * rng.integers(0, 2, shape)) / np.sqrt(1.16),
}
SHIFTS = [
    ("normal", 100, 100, 1, {}),
    ("normal", 100, 100, 4, {}),
    ("normal", 400, 400, 4, {}),
    ("normal", 20, 200, 1, {}),
    ("normal", 60, 60, 12, {}),
    ("skew", 100, 100, 2, {}),
    ("heavy tails", 100, 200, 3, {}),
    ("two humps", 100, 100, 2, {}),
    ("normal", 100, 100, 2, {"kernel": "gaussian"}),
    ("normal", 100, 100, 2, {"judge": "smallest"}),
    ("normal", 100, 100, 2, {"null": "moments"}),
    ("normal", 1000, 1000, 2, {"method": "features"}),
]


def tested(kind, shapes, shift, seed, options):
    rng = np.random.default_rng(seed)
    x, y = (DRAWS[kind](rng, shape) for shape in shapes)
    x[:, 0] += shift
    return mmd_test(x, y, threads=1, **options)


def shifts(repetitions):
    """Print the shift that tests claim to find with power 0.8, and the power at it and a quarter below and above."""
    print(f"{'columns':12s} {'rows':>11s} {'':3s} {'shift':>6s} {'x 0.75':>6s} {'x 1':>6s} {'x 1.25':>6s}")
    for kind, n_x, n_y, columns, options in SHIFTS:
        shapes = (n_x, columns), (n_y, columns)
        claimed = [tested(kind, shapes, 0.0, (1, seed), options).smallest_shift for seed in range(10)]
        shift = float(np.median([one.standard_deviations for one in claimed if one is not None]))
        powers = [
            np.mean([tested(kind, shapes, factor * shift, (2, seed), options).reject for seed in range(repetitions)])
            for factor in (0.75, 1.0, 1.25)
        ]
        told = " ".join(f"{power:6.2f}" for power in powers)
        said = " ".join(f"{name} {value}" for name, value in options.items())
        print(f"{kind:12s} {n_x:>5d}+{n_y:<5d} {columns:3d} {shift:6.3f} {told} {said}", flush=True)


def main():
    warnings.simplefilter("ignore", KerntestWarning)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", nargs="?", choices=["verdicts", "shifts"], default="verdicts")
    parser.add_argument(
        "--repetitions", type=int, help="pairs of samples of a cell (500; a quarter beyond 1,000 rows; 100)"
    )
    parser.add_argument("--largest", type=int, default=2000, help="rows of a sample at most")
    asked = parser.parse_args()
    if asked.what == "shifts":
        shifts(asked.repetitions or 100)
    else:
        verdicts(asked.repetitions or 500, asked.largest)


if __name__ == "__main__":
    sys.exit(main())
