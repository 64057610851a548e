"""Speed and memory of the independence test and of screens, as ratios in one run.

    python tests/benchmarks/speed_independence.py [--large] [--rows 10000]

Needs the extra `benchmark` (scikit-learn, hyppo); a peer that is not installed is left out. Every figure is the median
of several interleaved runs, so that a machine whose speed drifts slows both sides. --large adds a test of 100,000 rows
with its peak memory (minutes).
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from functools import partial

import numpy as np
from speed import COLUMNS, medians, seconds

from kerntest import hsic_pairs, hsic_test

KERNELS = {"kernel_x": "gaussian(2)", "kernel_y": "gaussian(2)"}


def independent(rows, columns=COLUMNS):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))


def against_gram_matrices(rows):
    from sklearn.metrics.pairwise import rbf_kernel

    x, y = independent(rows)
    ours, one_thread, gram = medians(
        [
            lambda: hsic_test(x, y, **KERNELS, permutations=rows),
            lambda: hsic_test(x, y, **KERNELS, permutations=rows, threads=1),
            lambda: (rbf_kernel(x, gamma=1 / 8), rbf_kernel(y, gamma=1 / 8)),
        ],
        runs=5,
    )
    print(f"one pair of kernels, n = {rows:,}, d = {COLUMNS}, {rows:,} relabellings, whole test: {ours:.3f} s")
    print(f"  the same on one thread: {one_thread:.3f} s")
    print(f"  scikit-learn rbf_kernel, both Gram matrices once: {gram:.3f} s   ratio {ours / gram:.2f}")
    return ours / rows


def against_hyppo(per_relabelling, rows, *, large):
    from hyppo.independence import Hsic

    for n, reps in ((2_000, 3), (5_000, 2)) if large else ((2_000, 3),):
        x, y = independent(n)
        without = seconds(lambda: Hsic().statistic(x, y))  # noqa: B023 - called at once
        taken = seconds(lambda: Hsic().test(x, y, reps=reps, auto=False))  # noqa: B023 - called at once
        ours = medians([lambda: hsic_test(x, y, **KERNELS, permutations=n)], runs=3)[0]  # noqa: B023 - called at once
        each = max(taken - without, 0.0) / reps
        print(
            f"  hyppo Hsic at n = {n:,}: {each * 1e3:.0f} ms per relabelling; kerntest {ours / n * 1e3:.4f} ms, "
            f"{n:,} of them in {ours:.2f} s"
        )
    print(f"  kerntest at n = {rows:,}: {per_relabelling * 1e3:.4f} ms per relabelling")


def default_tests():
    for n in (100, 1_000, 10_000):
        x, y = independent(n)
        (taken,) = medians([lambda: hsic_test(x, y)], runs=3)  # noqa: B023 - called at once
        pairs = len(hsic_test(x, y).family.members)
        print(f"auto, n = {n:,}, d = {COLUMNS}: {taken:.3f} s for {pairs} pairs of kernels")


def five_thousand():
    for columns in (1, COLUMNS):
        test = partial(hsic_test, *independent(5_000, columns), permutations=5_000)
        chosen = partial(test, kernel_x="gaussian", kernel_y="gaussian", bandwidth="median")
        named, median = medians([partial(test, **KERNELS), chosen], runs=5)
        print(
            f"n = 5,000, d = {columns} + {columns}, 5,000 relabellings, whole test: {named:.3f} s; "
            f"with bandwidths from the data {median:.3f} s"
        )


def screens(*, large):
    X = np.random.default_rng(0).normal(size=(2_000, 50))
    (taken,) = medians([lambda: hsic_pairs(X)], runs=3)
    found = hsic_pairs(X)
    print(
        f"all pairs of 50 columns x 2,000 rows: {taken:.1f} s for {found.tests:,} pairs with "
        f"{found.pairs[0].permutations:,} relabellings each"
    )
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.01, np.nan, X)
    few = holes if large else holes[:, :12]
    (taken,) = medians([lambda: hsic_pairs(few)], runs=1)
    columns = few.shape[1]
    print(f"all pairs of {columns} columns x 2,000 rows with missing values of their own in every pair: {taken:.1f} s")


ALONE = """
import sys, time
import numpy as np
from kerntest import hsic_test
n, d = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
started = time.perf_counter()
result = hsic_test(x, y, kernel_x="gaussian(2)", kernel_y="gaussian(2)", permutations=n)
taken = time.perf_counter() - started
try:
    # Of this program alone: getrusage would count the one that started it.
    status = open("/proc/self/status").read()
    peak = f"peak memory {int(status.split('VmHWM:')[1].split()[0]) / 1024:.0f} MB"
except OSError:
    peak = "peak memory unknown"
print(f"one pair of kernels, n = {n:,}, d = {d} + {d}, {result.null.permutations:,} relabellings, in a process of its own: "
      f"{taken:.2g} s, {peak}, p = {result.p_value:.4g}")
"""


def alone(rows, columns=COLUMNS):
    subprocess.run([sys.executable, "-c", ALONE, str(rows), str(columns)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    alone(arguments.rows)
    default_tests()
    five_thousand()
    screens(large=arguments.large)
    per_relabelling = None
    if importlib.util.find_spec("sklearn"):
        per_relabelling = against_gram_matrices(arguments.rows)
    if importlib.util.find_spec("hyppo") and per_relabelling is not None:
        against_hyppo(per_relabelling, arguments.rows, large=arguments.large)
    if arguments.large:
        alone(100_000, 1)
        alone(100_000)


if __name__ == "__main__":
    main()
