"""How often the independence test rejects where nothing depends on anything, and where something does.

A correct test violates each bound here with probability 10^-6 at most: they are the quantiles of the binomial
distribution. Seeds are fixed, so that a passing test goes on passing.
"""

import contextlib
import functools

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from kerntest import hsic_test
from kerntest.errors import DataError, UndecidedError

FEW, REPETITIONS = 40, 100
ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5)
FALSE_ALARM = 1e-6
PERMUTATIONS = 200


def normal(n, d):
    return lambda rng: rng.normal(size=(2, n, d))


def heavy_and_skewed(rng):
    return rng.standard_cauchy(size=(30, 2)), rng.exponential(size=30)


CASES = {
    "n = 12, two values": lambda rng: rng.integers(0, 2, (2, 12)).astype(float),
    "n = 12, two values, one rare": lambda rng: (rng.random((2, 12)) < [[0.5], [0.15]]).astype(float),
    "n = 25, three values and rounded numbers": lambda rng: (rng.integers(0, 3, 25), rng.normal(size=(25, 2)).round()),
    "d = 1": normal(40, 1),
    "d = 10": normal(40, 10),
    "d = 100": normal(20, 100),
    "heavy and skewed": heavy_and_skewed,
}
# In these the p-value is uniform on the multiples of 1/200: no two relabellings tie but with tiny probability.
CONTINUOUS = ("d = 1", "d = 10", "d = 100")
MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
WAYS = {
    "auto": {},
    "gaussian": MEDIAN,
    "biased": MEDIAN | {"estimator": "biased"},
    "moments": {"null": "moments"},
}
# The family takes ten times as long: not everything needs it.
QUICK = [(case, "gaussian") for case in CASES if case not in {"d = 10", "d = 100"}]
QUICK += [(case, "biased") for case in ("n = 12, two values", "d = 1")]
THOROUGH = [
    ("d = 10", "gaussian"),
    ("d = 100", "gaussian"),
    *((case, "auto") for case in ("n = 12, two values", "d = 1", "d = 10")),
]
TRIED = [*QUICK, *(pytest.param(*one, marks=pytest.mark.thorough) for one in THOROUGH)]


@functools.cache
def p_values(case, way, seed=None, repetitions=REPETITIONS):
    """Return the p-values of independent data sets, each with a seed of its own unless one is given."""
    found = np.ones(repetitions)
    for repetition in range(repetitions):
        x, y = CASES[case](np.random.default_rng((3, repetition)))
        drawn = repetition if seed is None else seed
        # A constant column, or one that differs in a single row, may leave nothing to test: never a rejection.
        with contextlib.suppress(DataError, UndecidedError):
            result = hsic_test(x, y, seed=drawn, threads=1, permutations=PERMUTATIONS, **WAYS[way])
            found[repetition] = result.p_value
    return found


def assert_within_level(p, slack=1.0):
    for alpha in ALPHAS:
        rejections = np.sum(p <= alpha)
        # The probability of so many or more.
        probability = bdtrc(rejections - 1, len(p), min(slack * alpha, 1.0))
        assert rejections == 0 or probability > FALSE_ALARM, (alpha, rejections)


@pytest.mark.parametrize(("case", "way"), TRIED)
def test_rejections_stay_within_the_level(case, way):
    assert_within_level(p_values(case, way, repetitions=FEW if (case, way) in QUICK else REPETITIONS))


@pytest.mark.parametrize(
    ("case", "repetitions"),
    [("d = 1", FEW), *(pytest.param(case, REPETITIONS, marks=pytest.mark.thorough) for case in CONTINUOUS)],
)
def test_the_moments_stay_close_to_the_level(case, repetitions):
    """Their level was measured to be right to a tenth."""
    p = p_values(case, "moments", repetitions=repetitions)
    assert_within_level(p, slack=1.1)
    for alpha in (0.1, 0.2, 0.5):
        assert bdtr(np.sum(p <= alpha), repetitions, 0.9 * alpha) > FALSE_ALARM, alpha


@pytest.mark.parametrize("case", ["n = 12, two values", "n = 12, two values, one rare"])
def test_the_level_holds_for_the_seed_that_everybody_uses(case):
    """Ties must not lean on the random order of the rows."""
    assert_within_level(p_values(case, "gaussian", seed=0, repetitions=FEW))


@pytest.mark.parametrize(("case", "way"), [one for one in QUICK if one[0] in CONTINUOUS])
def test_rejections_reach_the_level_where_nothing_ties(case, way):
    p = p_values(case, way, repetitions=FEW)
    for alpha in ALPHAS:
        assert bdtr(np.sum(p <= alpha), len(p), alpha) > FALSE_ALARM, alpha


def test_ties_count_as_exceedances():
    """Two values in 12 rows: a test that does not count ties rejects in 17 % of data sets at the level 0.05."""
    p = p_values("n = 12, two values", "gaussian", repetitions=FEW)
    assert np.mean(p <= 0.05) <= 0.05


@pytest.mark.thorough
def test_all_cases_together():
    """The same bound for all p-values: a level of 0.09 in place of 0.05 would show."""
    p = np.concatenate([p_values(case, way, repetitions=REPETITIONS) for case, way in [*QUICK, *THOROUGH]])
    # Several see the same data, and ties make p-values large: count half as many independent ones.
    for alpha in ALPHAS:
        share, count = np.mean(p <= alpha), len(p) // 2
        assert bdtrc(np.floor(share * count) - 1, count, alpha) > FALSE_ALARM, (alpha, share)


# Where something depends on something


def ten_columns(rng):
    """Return ten columns, and ten that follow them closely."""
    x = rng.normal(size=(200, 10))
    return x, x + 0.5 * rng.normal(size=(200, 10))


def parabola(rng):
    x = rng.normal(size=100)
    return x, x**2 + 0.3 * rng.normal(size=100)


def circle(rng):
    angle = rng.uniform(0, 2 * np.pi, 150)
    return np.cos(angle), np.sin(angle) + 0.1 * rng.normal(size=150)


def spread(rng):
    x = rng.normal(size=200)
    return x, x * rng.normal(size=200)


def category(rng):
    x = rng.integers(0, 3, 90)
    return x, (x == 1) + 0.5 * rng.normal(size=90)


FOUND = [(data, way) for data in (ten_columns, parabola, spread, category) for way in ("auto", "gaussian", "moments")]


@pytest.mark.parametrize(("data", "way"), [*FOUND, (circle, "auto")])
def test_dependence_is_found_every_time(data, way):
    for repetition in range(2):
        x, y = data(np.random.default_rng((5, repetition)))
        result = hsic_test(x, y, seed=repetition, permutations=PERMUTATIONS, **WAYS[way])
        assert 0 < result.p_value <= 0.05, repetition
