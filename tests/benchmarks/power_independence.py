"""Power of the independence test on the twenty simulations of hyppo, beside its own tests.

    python tests/benchmarks/power_independence.py [--repetitions 200] [--rows 50 --rows 100] [--simulation circle]

Needs the extra `benchmark` (hyppo). Two columns with noise; every rejection is at level 0.05, so that the standard error
of a power near 1/2 is 0.5 / sqrt(repetitions). All tests see the same samples, brought to standard deviation 1: hyppo's
Hsic takes the median distance of x for y too. `multimodal_independence` is independent: what stands there is the level;
the mean in the last line leaves it out.

hyppo's Dcorr and Hsic are run as they are by default (`auto=True`): more than 20 rows get its chi-square approximation,
which is quicker than its 1,000 permutations and conservative. --permuted runs them with 1,000 permutations, as kerntest
has, which takes some hundred times longer.
"""

from __future__ import annotations

import argparse
import inspect
import time
import warnings

import numpy as np

from kerntest import DataWarning, hsic_test

ALPHA = 0.05
INDEPENDENT = "multimodal_independence"
PERMUTATIONS = 1000


def auto(x, y, seed):
    return hsic_test(x, y, seed=seed, threads=1).p_value


def median(x, y, seed):
    return hsic_test(x, y, kernel_x="gaussian", kernel_y="gaussian", bandwidth="median", seed=seed, threads=1).p_value


def spearman(x, y, _):
    from scipy.stats import spearmanr

    return spearmanr(x, y).pvalue


def hyppo_test(name, permuted):
    """Return one of hyppo's tests as a function of x, y and a seed."""
    from hyppo import independence

    test = getattr(independence, name)

    def p_value(x, y, seed):
        how = {"auto": False, "reps": PERMUTATIONS, "random_state": seed} if permuted else {"auto": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return test().test(x[:, None], y[:, None], **how)[1]

    return p_value


def draw(simulation, rows, seed):
    """Return columns x and y; hyppo draws from numpy's global generator."""
    np.random.seed(seed)  # noqa: NPY002 - see above
    noise = {"noise": True} if "noise" in inspect.signature(simulation).parameters else {}
    x, y = (values[:, 0] / (values[:, 0].std() or 1.0) for values in simulation(rows, 1, **noise))
    return x, y


def powers(simulation, tests, rows, repetitions):
    """Return how often each test rejects."""
    rejections = np.zeros(len(tests))
    for repetition in range(repetitions):
        x, y = draw(simulation, rows, repetition)
        rejections += [test(x, y, repetition) <= ALPHA for test in tests.values()]
    return rejections / repetitions


def main():
    from hyppo.tools import SIMULATIONS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--rows", type=int, action="append", help="may be given again; 50 and 100 by default")
    parser.add_argument(
        "--simulation", action="append", choices=list(SIMULATIONS), help="only this one; may be repeated"
    )
    parser.add_argument("--permuted", action="store_true", help="hyppo's tests with 1,000 permutations")
    arguments = parser.parse_args()
    suffix = "" if arguments.permuted else "*"
    tests = {
        "auto": auto,
        "median": median,
        f"Dcorr{suffix}": hyppo_test("Dcorr", arguments.permuted),
        f"Hsic{suffix}": hyppo_test("Hsic", arguments.permuted),
        "Spearman": spearman,
    }
    started = time.perf_counter()
    for rows in arguments.rows or (50, 100):
        print(f"\n{f'n = {rows}':32}" + "".join(f"{name:>10}" for name in tests))
        found = []
        for name in arguments.simulation or SIMULATIONS:
            power = powers(SIMULATIONS[name], tests, rows, arguments.repetitions)
            if name != INDEPENDENT:
                found.append(power)
            label = f"{name} (level)" if name == INDEPENDENT else name
            print(f"{label:32}" + "".join(f"{one:10.3f}" for one in power), flush=True)
        if found:
            print(f"{'mean power':32}" + "".join(f"{one:10.3f}" for one in np.mean(found, axis=0)), flush=True)
    if suffix:
        print("\n* hyppo, chi-square approximation")
    print(f"\n{arguments.repetitions} repetitions each, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
