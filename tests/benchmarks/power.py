"""Power of the default test (auto) beside the median bandwidth, and beside published numbers.

    python tests/benchmarks/power.py [--repetitions 200] [--seed 1]

Every rejection is at level 0.05; the standard error of a power near 1/2 is 0.5 / sqrt(repetitions).
"""

from __future__ import annotations

import argparse
import time

from problems import PROBLEMS, streams

from kerntest import mmd_test


def rejections(problem, strength, repetitions, seed):
    """Return how often auto and the median bandwidth reject."""
    auto = median = 0
    for repetition in range(repetitions):
        x, y = problem.draw(streams(seed, repetition), problem.n, strength, **problem.options)
        auto += mmd_test(x, y, seed=repetition).reject
        median += mmd_test(x, y, kernel="gaussian", bandwidth="median", seed=repetition).reject
    return auto / repetitions, median / repetitions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.perf_counter()
    for problem in PROBLEMS:
        print(f"\n{problem.name}")
        rows = [rejections(problem, s, arguments.repetitions, arguments.seed) for s in problem.strengths]
        print(f"{'':36}" + "".join(f"{strength:>8g}" for strength in problem.strengths))
        print(f"{'kerntest, auto':36}" + "".join(f"{auto:8.3f}" for auto, _ in rows))
        print(f"{'kerntest, gaussian at the median':36}" + "".join(f"{median:8.3f}" for _, median in rows))
        for name, powers in problem.published.items():
            print(f"{name + ' (published)':36}" + "".join(f"{power:8.3f}" for power in powers), flush=True)
    print(f"\n{arguments.repetitions} repetitions each, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
