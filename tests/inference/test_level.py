"""How often both tests reject where nothing differs and nothing depends on anything.

A correct test violates each bound here with probability 10^-6 at most: they are the quantiles of the binomial
distribution. Seeds are fixed, so that a passing test goes on passing.
"""

import contextlib
import functools

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from kerntest import hsic_test, mmd_test
from kerntest.errors import DataError, UndecidedError

pytestmark = pytest.mark.usefixtures("without_shifts")

ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5)
FALSE_ALARM = 1e-6
# 0.05 is a multiple of 1/200 for the numbers of rows here, or ties make up for it.
PERMUTATIONS = 200


def two(draw, m, n):
    return mmd_test, lambda rng: (draw(rng, m), draw(rng, n))


def normal(n, d):
    return hsic_test, lambda rng: rng.normal(size=(2, n, d))


CASES = {
    "m = n = 5": two(lambda rng, n: rng.normal(size=(n, 2)), 5, 5),
    "ties: rounded numbers": two(lambda rng, n: rng.normal(size=(n, 2)).round(), 15, 20),
    "ties: two values": two(lambda rng, n: rng.integers(0, 2, n).astype(float), 25, 30),
    "categories alone": two(lambda rng, n: rng.integers(0, 3, (n, 2)).astype(float), 12, 18),
    "n = 200": two(lambda rng, n: rng.normal(size=(n, 2)), 100, 100),
    "5 against 60": two(lambda rng, n: rng.standard_cauchy(size=(n, 2)), 5, 60),
    "n = 12, two values": (hsic_test, lambda rng: rng.integers(0, 2, (2, 12)).astype(float)),
    "n = 12, one rare": (hsic_test, lambda rng: (rng.random((2, 12)) < [[0.5], [0.15]]).astype(float)),
    "n = 25, rounded": (hsic_test, lambda rng: (rng.integers(0, 3, 25), rng.normal(size=(25, 2)).round())),
    "heavy and skewed": (hsic_test, lambda rng: (rng.standard_cauchy(size=(30, 2)), rng.exponential(size=30))),
    "d = 1": normal(40, 1),
    "d = 10": normal(40, 10),
    "d = 100": normal(20, 100),
}
# In these no two relabellings tie but with tiny probability: the p-value is uniform on the multiples of 1/R.
RELABELLINGS = {"n = 200": 200, "5 against 60": 260, "d = 1": 200, "d = 10": 200, "d = 100": 200}
MEDIAN = {"bandwidth": "median"}
WAYS = {"auto": {}, "gaussian": MEDIAN, "biased": MEDIAN | {"estimator": "biased"}, "moments": {"null": "moments"}}
WAYS |= {name: {"statistic": name} for name in ("kcc", "kmi")}
# The family takes ten times as long: in the quick suite the one kernel that is cheap, on fewer data sets.
QUICK, REPETITIONS = 60, 300
TRIED = [(case, "gaussian") for case in CASES if case not in {"d = 10", "d = 100"}]
TRIED += [("n = 12, two values", "biased"), ("d = 1", "biased"), ("n = 25, rounded", "kcc"), ("n = 25, rounded", "kmi")]
LONGER = [
    *TRIED,
    ("d = 10", "gaussian"),
    ("d = 100", "gaussian"),
    *((case, "auto") for case in CASES if case != "d = 100"),
]


def options_of(test, case, way):
    kernel = "hamming" if case.startswith("categories") else "gaussian"
    names = ("kernel",) if test is mmd_test else ("kernel_x", "kernel_y")
    named = dict.fromkeys(names, kernel) if "bandwidth" in WAYS[way] else {}
    return WAYS[way] | named | ({"categorical": "*"} if kernel == "hamming" else {})


@functools.cache
def p_values(case, way, repetitions=QUICK, seed=None):
    """Return the p-values of independent data sets, each with a seed of its own unless one is given."""
    test, draw = CASES[case]
    found = np.ones(repetitions)
    for repetition in range(repetitions):
        x, y = draw(np.random.default_rng((11, repetition)))
        drawn = repetition if seed is None else seed
        # A constant column, or one that differs in a single row, may leave nothing to test: never a rejection.
        with contextlib.suppress(DataError, UndecidedError):
            options = options_of(test, case, way)
            found[repetition] = test(x, y, seed=drawn, threads=1, permutations=PERMUTATIONS, **options).p_value
    return found


def assert_within_level(p, slack=1.0, count=None):
    for alpha in ALPHAS:
        # The probability of so many or more.
        count = count or len(p)
        rejections = np.floor(np.mean(p <= alpha) * count + 1e-9)
        probability = bdtrc(rejections - 1, count, min(slack * alpha, 1.0))
        assert rejections == 0 or probability > FALSE_ALARM, (alpha, rejections)


EVERY = [
    *((case, way, QUICK) for case, way in TRIED),
    *(pytest.param(case, way, REPETITIONS, marks=pytest.mark.thorough) for case, way in LONGER),
]


@pytest.mark.parametrize(("case", "way", "repetitions"), EVERY)
def test_rejections_stay_within_the_level_and_reach_it_where_nothing_ties(case, way, repetitions):
    p = p_values(case, way, repetitions)
    assert_within_level(p)
    for alpha in ALPHAS if case in RELABELLINGS and way != "auto" else ():
        reachable = np.floor(alpha * RELABELLINGS[case] + 1e-9) / RELABELLINGS[case]
        assert bdtr(np.sum(p <= alpha), repetitions, reachable) > FALSE_ALARM, alpha


@pytest.mark.parametrize(
    ("case", "repetitions"),
    [("d = 1", QUICK), *(pytest.param(f"d = {d}", REPETITIONS, marks=pytest.mark.thorough) for d in (1, 10, 100))],
)
def test_the_moments_stay_close_to_the_level(case, repetitions):
    """Their level was measured to be right to a tenth."""
    p = p_values(case, "moments", repetitions)
    assert_within_level(p, slack=1.1)
    for alpha in (0.1, 0.2, 0.5):
        assert bdtr(np.sum(p <= alpha), repetitions, 0.9 * alpha) > FALSE_ALARM, alpha


@pytest.mark.parametrize("case", ["n = 12, two values", "n = 12, one rare"])
def test_the_level_holds_for_the_seed_that_everybody_uses(case):
    """Ties must not lean on the random order of the rows. Uncounted, they reject in 17 % of data sets at 0.05."""
    assert_within_level(p_values(case, "gaussian", seed=0))
    assert np.mean(p_values(case, "gaussian") <= 0.05) <= 0.05


@pytest.mark.thorough
def test_all_cases_together():
    """The same bound for all p-values: a level of 0.065 in place of 0.05 would show."""
    p = np.concatenate([p_values(case, way, REPETITIONS) for case, way in LONGER])
    # Several see the same data, and ties make p-values large: count half as many independent ones.
    assert_within_level(p, count=len(p) // 2)
