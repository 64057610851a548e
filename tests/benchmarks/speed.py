"""Speed and memory, as ratios in one run.

    python tests/benchmarks/speed.py [--large] [--rows 10000]

Needs the extra `benchmark` (scikit-learn, hyppo); a peer that is not installed is left out. Every figure is the median
of several interleaved runs, so that a machine whose speed drifts slows both sides. --large adds a test of 100,000 rows
with its peak memory (minutes).
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from kerntest import mmd_test

COLUMNS = 5


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def medians(works, runs):
    """Median seconds of each piece of work over interleaved runs, after one run to warm up."""
    for work in works:
        work()
    times = [[seconds(work) for work in works] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def samples(rows):
    rng = np.random.default_rng(0)
    half = rows // 2
    return rng.normal(size=(half, COLUMNS)), rng.normal(size=(rows - half, COLUMNS))


def against_gram_matrix(rows):
    from sklearn.metrics.pairwise import rbf_kernel

    x, y = samples(rows)
    pooled = np.concatenate([x, y])
    ours, one_thread, gram = medians(
        [
            lambda: mmd_test(x, y, kernel="gaussian(2)", permutations=rows),
            lambda: mmd_test(x, y, kernel="gaussian(2)", permutations=rows, threads=1),
            lambda: rbf_kernel(pooled, gamma=1 / 8),
        ],
        runs=5,
    )
    print(f"single kernel, n = {rows:,}, d = {COLUMNS}, {rows:,} relabellings, whole test: {ours:.3f} s")
    print(f"  the same on one thread: {one_thread:.3f} s")
    print(f"  scikit-learn rbf_kernel, that Gram matrix once: {gram:.3f} s   ratio {ours / gram:.2f}")
    # Called again at once, it finds the 800 MB of its last result still mapped.
    again = min(seconds(lambda: rbf_kernel(pooled, gamma=1 / 8)) for _ in range(3))
    print(f"  the same again and again, its memory still mapped: {again:.3f} s   ratio {ours / again:.2f}")
    return ours / rows


def against_permutation_tests(per_relabelling, rows):
    x, y = samples(rows)
    pooled, m = np.concatenate([x, y]), len(x)
    from scipy.stats import permutation_test
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(pooled, gamma=1 / 8)

    def statistic(left, right):
        left, right = left.astype(int), right.astype(int)
        within_x, within_y = K[np.ix_(left, left)], K[np.ix_(right, right)]
        return within_x.mean() + within_y.mean() - 2.0 * K[np.ix_(left, right)].mean()

    labels = (np.arange(m), np.arange(m, len(pooled)))
    repeats = 5
    taken = seconds(lambda: permutation_test(labels, statistic, n_resamples=repeats, alternative="greater", rng=0)) / (
        repeats + 1
    )
    print(f"  per relabelling at n = {rows:,}: kerntest {per_relabelling * 1e3:.4f} ms")
    print(
        f"  scipy permutation_test over a ready Gram matrix: {taken * 1e3:.1f} ms   ({taken / per_relabelling:,.0f} x)"
    )
    if importlib.util.find_spec("hyppo") is None:
        print("  hyppo is not installed")
        return
    small = 2000
    x, y = samples(small)
    from hyppo.ksample import MMD

    reps = 10
    with_reps = seconds(lambda: MMD().test(x, y, reps=reps, auto=False))
    ours = statistics.median(
        seconds(lambda: mmd_test(x, y, kernel="gaussian(2)", permutations=small)) for _ in range(5)
    )
    print(
        f"  hyppo MMD at n = {small:,}: {with_reps / reps * 1e3:.0f} ms per relabelling, kerntest {ours / small * 1e3:.4f} ms"
    )


def default_test():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, COLUMNS)), rng.normal(size=(1000, COLUMNS))
    (taken,) = medians([lambda: mmd_test(x, y)], runs=5)
    members = len(mmd_test(x, y).family.members)
    print(f"auto, 1,000 + 1,000 rows, d = {COLUMNS}: {taken:.3f} s for {members} kernels")


def explanation(columns=57):
    rng = np.random.default_rng(0)
    x, y = rng.lognormal(size=(1813, columns)), rng.lognormal(0.1, size=(2788, columns))
    plain, explained = medians(
        [
            lambda explain=explain: mmd_test(x, y, kernel="gaussian", bandwidth="median", explain=explain)
            for explain in (False, True)
        ],
        runs=5,
    )
    print(
        f"one kernel, 4,601 rows, d = {columns}: {plain:.3f} s, explained {explained:.3f} s   ratio {explained / plain:.1f}"
    )


ALONE = """
import sys, time
import numpy as np
from kerntest import mmd_test
half = int(sys.argv[1]) // 2
rng = np.random.default_rng(0)
x, y = rng.normal(size=(half, 5)), rng.normal(size=(half, 5))
started = time.perf_counter()
result = mmd_test(x, y, kernel="gaussian(2)", permutations=2 * half)
taken = time.perf_counter() - started
try:
    # Of this program alone: getrusage would count the one that started it.
    status = open("/proc/self/status").read()
    peak = f"peak memory {int(status.split('VmHWM:')[1].split()[0]) / 1024:.0f} MB"
except OSError:
    peak = "peak memory unknown"
print(f"single kernel, n = {2 * half:,}, d = 5, {result.null.permutations:,} relabellings, in a process of its own: "
      f"{taken:.2g} s, {peak}, p = {result.p_value:.4g}")
"""


def alone(rows):
    subprocess.run([sys.executable, "-c", ALONE, str(rows)], check=True)


def start_up():
    """Start-up times of the command, see startup.py."""
    subprocess.run([sys.executable, str(Path(__file__).with_name("startup.py"))], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    alone(arguments.rows)
    default_test()
    explanation()
    per_relabelling = against_gram_matrix(arguments.rows)
    against_permutation_tests(per_relabelling, arguments.rows)
    start_up()
    if arguments.large:
        alone(100_000)


if __name__ == "__main__":
    main()
