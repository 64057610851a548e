"""How often the test rejects where nothing differs.

A correct test violates each bound here with probability 10^-6 at most: they are the quantiles of the binomial
distribution. Seeds are fixed, so that a passing test goes on passing.
"""

import functools
import itertools

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from kerntest import mmd_test

# In the quick suite the one kernel that is cheap, on fewer data sets: that sees a level twice too high.
QUICK, REPETITIONS = 80, 400
ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5)
FALSE_ALARM = 1e-6
PERMUTATIONS = 200


def two(draw, m, n):
    return lambda rng: (draw(rng, m), draw(rng, n))


CASES = {
    "m = n = 5": two(lambda rng, n: rng.normal(size=(n, 2)), 5, 5),
    "ties: rounded numbers": two(lambda rng, n: rng.normal(size=(n, 2)).round(), 15, 20),
    "ties: two values": two(lambda rng, n: rng.integers(0, 2, n).astype(float), 25, 30),
    "categories alone": two(lambda rng, n: rng.integers(0, 3, (n, 2)).astype(float), 12, 18),
    "n = 200": two(lambda rng, n: rng.normal(size=(n, 2)), 100, 100),
    "5 against 60": two(lambda rng, n: rng.standard_cauchy(size=(n, 2)), 5, 60),
}
# In these the p-value is uniform on the multiples of 1/R: no two relabellings tie but with tiny probability.
CONTINUOUS = ("n = 200", "5 against 60")
KERNELS = {"auto": {}, "gaussian": {"kernel": "gaussian", "bandwidth": "median"}}


@functools.cache
def p_values(case, kernel, repetitions):
    options = KERNELS[kernel] | ({"categorical": "*"} if case.startswith("categories") else {})
    found = np.empty(repetitions)
    for repetition in range(repetitions):
        x, y = CASES[case](np.random.default_rng((11, repetition)))
        if kernel == "gaussian" and case.startswith("categories"):
            options["kernel"] = "hamming"
        # 200 relabellings: 0.05 is a multiple of 1/R for the numbers of rows above, or ties make up for it.
        result = mmd_test(x, y, seed=repetition, threads=1, permutations=PERMUTATIONS, **options)
        found[repetition] = result.p_value
    return found


def assert_within_level(p):
    for alpha in ALPHAS:
        rejections = np.sum(p <= alpha)
        # The probability of so many or more.
        assert bdtrc(rejections - 1, len(p), alpha) > FALSE_ALARM or rejections == 0, (alpha, rejections)


@pytest.mark.parametrize("case", CASES)
def test_few_data_sets_stay_within_the_level(case):
    assert_within_level(p_values(case, "gaussian", QUICK))


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_rejections_stay_within_the_level(case, kernel):
    assert_within_level(p_values(case, kernel, REPETITIONS))


@pytest.mark.parametrize(
    ("kernel", "repetitions"),
    [("gaussian", QUICK), *(pytest.param(kernel, REPETITIONS, marks=pytest.mark.thorough) for kernel in KERNELS)],
)
@pytest.mark.parametrize("case", CONTINUOUS)
def test_rejections_reach_the_level_where_nothing_ties(case, kernel, repetitions):
    p = p_values(case, kernel, repetitions)
    relabellings = {"n = 200": 200, "5 against 60": 260}[case]
    for alpha in ALPHAS:
        reachable = np.floor(alpha * relabellings + 1e-9) / relabellings
        rejections = np.sum(p <= alpha)
        assert bdtr(rejections, repetitions, reachable) > FALSE_ALARM, (alpha, rejections)


@pytest.mark.thorough
def test_all_cases_together():
    """The same bound for all 4,800 p-values: a level of 0.065 in place of 0.05 would show."""
    p = np.concatenate([p_values(case, kernel, REPETITIONS) for case in CASES for kernel in KERNELS])
    # Both kernels see the same data and cases share no data: count half as many independent ones.
    for alpha in ALPHAS:
        share = np.mean(p <= alpha)
        count = len(p) // 2
        assert bdtrc(np.floor(share * count) - 1, count, alpha) > FALSE_ALARM, (alpha, share)


def splits(rows, n_x):
    """Yield every way to call n_x of the rows X and the others Y."""
    everything = set(range(len(rows)))
    for members in itertools.combinations(range(len(rows)), n_x):
        yield rows[list(members)], rows[sorted(everything - set(members))]


@pytest.mark.parametrize("options", [KERNELS["auto"], KERNELS["gaussian"]], ids=["auto", "gaussian"])
@pytest.mark.parametrize("n_x", [4, 3])
def test_exact_over_all_splits_for_every_random_order(n_x, options):
    """The definition of exactness without chance: of all splits of eight rows, at most a share a has p <= a.

    All relabellings are used where they are few, and this holds for every single seed.
    """
    rows = np.random.default_rng(2).normal(size=(8, 2))
    # As many tests as there are splits, and of a family each takes longer.
    for seed in range(2 if options and n_x == 3 else 1):
        p = np.array(
            [mmd_test(x, y, seed=seed, permutations=8, threads=1, **options).p_value for x, y in splits(rows, n_x)]
        )
        assert len(p) == {4: 70, 3: 56}[n_x]
        for alpha in np.arange(1, 9) / 8:
            assert np.mean(p <= alpha + 1e-12) <= alpha + 1e-12, (seed, alpha)


def test_exact_over_all_splits_on_average_over_further_orders():
    """With cosets the level holds on average over seeds. 10 of them: a generous bound on the average of 200 p-values."""
    rows = np.random.default_rng(2).normal(size=(6, 2)).round(1)
    p = np.array(
        [
            [
                mmd_test(x, y, seed=seed, permutations=32, threads=1, kernel="laplacian(1)").p_value
                for x, y in splits(rows, 3)
            ]
            for seed in range(10)
        ]
    )
    for alpha in (1 / 16, 1 / 8, 1 / 4, 1 / 2):
        by_seed = np.mean(p <= alpha + 1e-12, axis=1)
        # Shares of different seeds are independent: five of their standard errors above the level.
        assert by_seed.mean() <= alpha + 5 * by_seed.std() / np.sqrt(len(by_seed))
