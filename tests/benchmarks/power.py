"""Power of the default test beside its variants, and beside peers on the same data sets.

    python tests/benchmarks/power.py [--repetitions 200] [--seed 1] [--problem WORD ...] [--without-peers]

Every rejection is at level 0.05; the standard error of a power near 1/2 is 0.5 / sqrt(repetitions). MMDAgg and MMD-FUSE
are those of kerneltests (the extra `benchmark`), with their defaults, on columns brought to standard deviation 1 as
kerntest has them; what was published for them stands below. The last lines name the mean of all points with a
difference, and for every test the point where it is furthest below the best.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from problems import PROBLEMS, streams

from kerntest import DataWarning, mmd_test

ALPHA = 0.05
OURS = {
    "kerntest": {},
    "the same, smallest p": {"judge": "smallest"},
    "gaussian at the median": {"kernel": "gaussian", "bandwidth": "median"},
}


def scaled(x, y):
    both = np.concatenate([x, y])
    return ((sample - both.mean(axis=0)) / both.std(axis=0) for sample in (x, y))


def rejections(problem, strength, repetitions, seed, peers):
    """Return how often every test rejects."""
    counts = dict.fromkeys([*OURS, *peers], 0)
    for repetition in range(repetitions):
        x, y = problem.draw(streams(seed, repetition), problem.n, strength, **problem.options)
        for name, options in OURS.items():
            counts[name] += mmd_test(x, y, seed=repetition, alpha=ALPHA, **options).reject
        for name, test in peers.items():
            counts[name] += int(test(*scaled(x, y), alpha=ALPHA, seed=repetition))
    return [counts[name] / repetitions for name in counts]


def known_peers():
    from kt.mmdagg import mmdagg
    from kt.mmdfuse import mmdfuse

    return {"MMDAgg": mmdagg, "MMD-FUSE": mmdfuse}


def no_difference(problem, strength):
    """Whether this strength is none."""
    return strength == {"mixture": 1.0, "counts": 2.0}.get(problem.name.split()[0].rstrip(","), 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--problem", action="append", help="only those with this word in their name; may be repeated")
    parser.add_argument("--without-peers", action="store_true", help="kerntest alone")
    arguments = parser.parse_args()
    peers = {} if arguments.without_peers else known_peers()
    names = [*OURS, *peers]
    started, found = time.perf_counter(), {}
    for problem in PROBLEMS:
        if arguments.problem and not any(word in problem.name for word in arguments.problem):
            continue
        print(f"\n{problem.name}\n{'':30}" + "".join(f"{strength:>8g}" for strength in problem.strengths))
        rows = [rejections(problem, s, arguments.repetitions, arguments.seed, peers) for s in problem.strengths]
        for name, powers in zip(names, zip(*rows, strict=True), strict=True):
            print(f"{name:30}" + "".join(f"{power:8.3f}" for power in powers), flush=True)
        for name, powers in problem.published.items():
            print(f"{name + ' (published)':30}" + "".join(f"{power:8.3f}" for power in powers), flush=True)
        for strength, row in zip(problem.strengths, rows, strict=True):
            if not no_difference(problem, strength):
                found[problem.name, strength] = row
    powers = np.array(list(found.values()))
    behind = powers.max(axis=1, keepdims=True) - powers
    print(f"\n{'mean of all with a difference':30}{'':8}furthest below the best")
    for place, name in enumerate(names):
        worst = int(behind[:, place].argmax())
        (where, strength), by = list(found)[worst], behind[worst, place]
        print(f"{name:30}{powers[:, place].mean():8.3f}{by:8.3f}  {where}: {strength:g}")
    print(f"\n{arguments.repetitions} repetitions each, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
