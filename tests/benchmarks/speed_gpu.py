"""Tests on a GPU: seconds, and the difference from the threads of this machine.

    python tests/benchmarks/speed_gpu.py [10000 100000 1000000] [--columns 5] [--runs 3] [--here]

Without a GPU, KERNTEST_DEVICE=cpu runs the same code on the processors, for some thousand rows. --here adds the threads
of this machine: the same p-value is expected of both, and statistics that agree to 1e-10 of their scale.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from kerntest import compute_on, hsic_test, mmd_test

ROW = "{:<6} {:>10} {:>12} {:>12} {:>11} {:>12} {:>10} {:>11}"


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
        print(f"{engine.device}, d = {options.columns}, gaussian, as many relabellings as rows")
        print(ROW.format("test", "rows", "seconds", "ns / pair", "p", "seconds here", "p here", "difference"))
        for rows in options.rows:
            for name, work in tests(rows, options.columns):
                seconds, found = timed(work, options.runs)
                here = ("", "", "")
                if options.here:
                    with compute_on("local"):
                        there, exact = timed(work, options.runs)
                    difference = abs(found.statistic - exact.statistic)
                    here = (f"{there:.3f}", f"{exact.p_value:.6f}", f"{difference:.1e}")
                pairs = f"{1e9 * seconds / (rows**2 / 2):.3g}"
                print(ROW.format(name, f"{rows:,}", f"{seconds:.3f}", pairs, f"{found.p_value:.6f}", *here))


if __name__ == "__main__":
    main()
