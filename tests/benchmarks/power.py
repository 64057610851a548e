"""Power of the default tests beside their variants, and beside peers on the same data sets.

    python tests/benchmarks/power.py [mmd hsic] [--repetitions 200] [--only WORD] [--without-peers]

Every rejection is at level 0.05; the standard error of a power near 1/2 is 0.5 / sqrt(repetitions). The last lines name the
mean of all points with a difference, and for every test the point where it is furthest below the best.

mmd   problems.py beside this file says how the data are drawn. MMDAgg and MMD-FUSE are those of kerneltests (the extra
      `benchmark`), with their defaults, on columns brought to standard deviation 1 as kerntest has them; what was published
      for them stands below
hsic  the twenty simulations of hyppo with noise (needs the extra `benchmark`), one column a side, brought to standard
      deviation 1, for hyppo's Hsic takes the median distance of x for y too. `multimodal_independence` is independent: what
      stands there is the level. hyppo's Dcorr and Hsic run as they are by default: more than 20 rows get a chi-square
      approximation, quicker than its 1,000 permutations and conservative; --permuted has those, some hundred times longer
"""

from __future__ import annotations

import inspect
import time
import warnings
from functools import partial

import numpy as np
from measure import parser_of
from problems import PROBLEMS, streams

from kerntest import DataWarning, hsic_test, mmd_test

ALPHA = 0.05
OURS = {
    "mmd": {
        "kerntest": {},
        "the same, smallest p": {"judge": "smallest"},
        "gaussian at the median": {"kernel": "gaussian", "bandwidth": "median"},
    },
    "hsic": {
        "kerntest": {},
        "gaussian at the median": {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"},
        **{name: {"statistic": name} for name in ("coco", "kcc", "kmi")},
    },
}


def ours(question):
    """Our tests, as functions of x, y and a seed that return whether they reject."""
    test = {"mmd": mmd_test, "hsic": hsic_test}[question]

    def rejects(x, y, seed, *, options):
        return test(x, y, seed=seed, alpha=ALPHA, threads=1, **options).reject

    return {name: partial(rejects, options=options) for name, options in OURS[question].items()}


def two_sample_peers():
    from kt.mmdagg import mmdagg
    from kt.mmdfuse import mmdfuse

    def rejects(x, y, seed, *, test):
        both = np.concatenate([x, y])
        return int(test(*((one - both.mean(axis=0)) / both.std(axis=0) for one in (x, y)), alpha=ALPHA, seed=seed))

    return {"MMDAgg": partial(rejects, test=mmdagg), "MMD-FUSE": partial(rejects, test=mmdfuse)}


def independence_peers(*, permuted):
    from hyppo import independence
    from scipy.stats import spearmanr

    def rejects(x, y, seed, *, test):
        how = {"auto": False, "reps": 1000, "random_state": seed} if permuted else {"auto": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return test().test(x[:, None], y[:, None], **how)[1] <= ALPHA

    names = ("Dcorr", "Hsic")
    peers = {f"hyppo's {name}": partial(rejects, test=getattr(independence, name)) for name in names}
    return {**peers, "Spearman": lambda x, y, _: spearmanr(x, y).pvalue <= ALPHA}


def two_sample_points():
    """Yield each problem at each strength: its name, whether anything differs, how it is drawn, and what was published."""
    for problem in PROBLEMS:
        for place, strength in enumerate(problem.strengths):
            published = {name: powers[place] for name, powers in problem.published.items()}
            yield (
                f"{problem.name}: {strength:g}",
                strength != problem.none,
                partial(sampled, problem, strength),
                published,
            )


def sampled(problem, strength, seed, repetition):
    return problem.draw(streams(seed, repetition), problem.n, strength, **problem.options)


def independence_points():
    from hyppo.tools import SIMULATIONS

    for rows in (50, 100):
        for name, simulation in SIMULATIONS.items():
            draw = partial(simulated, simulation, rows)
            yield f"{name}, n = {rows}", name != "multimodal_independence", draw, {}


def simulated(simulation, rows, _, repetition):
    """Columns x and y; hyppo draws from numpy's global generator."""
    np.random.seed(repetition)  # noqa: NPY002 - see above
    noise = {"noise": True} if "noise" in inspect.signature(simulation).parameters else {}
    return tuple(values[:, 0] / (values[:, 0].std() or 1.0) for values in simulation(rows, 1, **noise))


def table(points, tests, repetitions, seed):
    """Print the powers at every point, their means, and where each test is furthest below the best."""
    found = {}
    print(f"{'':62}" + "".join(f"{name:>24}" for name in tests))
    for what, differs, draw, published in points:
        rejections = np.zeros(len(tests))
        for repetition in range(repetitions):
            x, y = draw(seed, repetition)
            rejections += [test(x, y, repetition) for test in tests.values()]
        powers = rejections / repetitions
        if differs:
            found[what] = powers
        others = "".join(f"   {name} {power:.3f}" for name, power in published.items())
        print(f"{what:62}" + "".join(f"{power:24.3f}" for power in powers) + others, flush=True)
    if not found:
        return
    powers = np.array(list(found.values()))
    behind = powers.max(axis=1, keepdims=True) - powers
    for name, mean, below in zip(tests, powers.mean(axis=0), behind.T, strict=True):
        print(f"{name}: mean {mean:.3f}, furthest below the best by {below.max():.3f} at {list(found)[below.argmax()]}")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("questions", nargs="*", metavar="TEST", help="mmd, hsic; both by default")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="points with this text alone")
    parser.add_argument("--without-peers", action="store_true", help="kerntest alone")
    parser.add_argument("--permuted", action="store_true", help="hyppo's tests with 1,000 permutations")
    arguments = parser.parse_args()
    started = time.perf_counter()
    points = {"mmd": two_sample_points, "hsic": independence_points}
    peers = {"mmd": two_sample_peers, "hsic": partial(independence_peers, permuted=arguments.permuted)}
    for question in arguments.questions or points:
        print(f"\n{question}")
        tests = ours(question) | ({} if arguments.without_peers else peers[question]())
        chosen = (point for point in points[question]() if arguments.only in point[0])
        table(chosen, tests, arguments.repetitions, arguments.seed)
    print(f"\n{arguments.repetitions} repetitions each, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DataWarning)
    main()
