"""Tests on a GPU: seconds, and the error against float64.

    python tests/benchmarks/speed_gpu.py [10000 100000 1000000] [--columns 5] [--runs 3] [--here]

Without a GPU, KERNTEST_DEVICE=torch:cpu runs the same code on the processors, for some thousand rows. --here adds the
threads of this machine in float64: the same p-value is expected of both. The error is the largest that was measured on
some lines of each computation, in standard deviations of the statistic over the relabellings.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from kerntest import compute_on, hsic_test, mmd_test

ROW = "{:<6} {:>10} {:>12} {:>12} {:>11} {:>9} {:>12} {:>10}"


def tests(rows, columns):
    rng = np.random.default_rng(0)
    half = rows // 2
    x, y = rng.normal(size=(half, columns)), rng.normal(size=(rows - half, columns))
    pooled, z = np.concatenate([x, y]), rng.normal(size=(rows, columns))
    yield "mmd", lambda: mmd_test(x, y, kernel="gaussian", permutations=rows)
    yield "hsic", lambda: hsic_test(pooled, z, kernel_x="gaussian", kernel_y="gaussian", permutations=rows)


def timed(work, runs):
    """Return the median seconds of several runs, after one to warm up where there are several, and the last result."""
    seconds, result = [], None
    for _ in range(runs + (runs > 1)):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[-runs:]), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--here", action="store_true")
    options = parser.parse_args()
    with compute_on("gpu") as engine:
        print(f"{engine.arrays.describe()}, d = {options.columns}, gaussian, as many relabellings as rows")
        print(ROW.format("test", "rows", "seconds", "ns / pair", "p", "error/sd", "seconds here", "p here"))
        for rows in options.rows:
            for name, work in tests(rows, options.columns):
                engine.arrays.error = 0.0
                seconds, found = timed(work, options.runs)
                error = engine.arrays.error
                here = ("", "")
                if options.here:
                    with compute_on("local"):
                        there, exact = timed(work, options.runs)
                    here = (f"{there:.3f}", f"{exact.p_value:.6f}")
                pairs = f"{1e9 * seconds / (rows**2 / 2):.3g}"
                print(
                    ROW.format(
                        name, f"{rows:,}", f"{seconds:.3f}", pairs, f"{found.p_value:.6f}", f"{error:.1e}", *here
                    )
                )


if __name__ == "__main__":
    main()
