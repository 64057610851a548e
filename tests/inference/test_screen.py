"""All pairs of a table: each is the single test of its two columns, and all together have the right level."""

import itertools
import math

import naive
import numpy as np
import pandas as pd
import pytest
from same_results import assert_same
from scipy.special import bdtrc
from scipy.stats import pearson3
from tolerances import assert_close

from kerntest import hsic_pairs, hsic_test, parse_kernel

ESTIMATORS = ("unbiased", "biased")
FALSE_ALARM = 1e-6
MANY_RANDOM = 4000


def mixed_frame(n=45, seed=0, *, holes=False):
    """Return columns of every kind, two of which depend on others; with `holes`, values missing here and there."""
    rng = np.random.default_rng((seed, n))
    frame = pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "wide": rng.lognormal(size=n) * 100,
            "ties": rng.normal(size=n).round(),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "new": rng.random(n) < 0.5,
        }
    )
    frame["square"] = frame["plain"] ** 2 + 0.3 * rng.normal(size=n)
    frame["where"] = np.where(rng.random(n) < 0.7, frame["city"], "Lima")
    if holes:
        frame.loc[rng.choice(n, 5, replace=False), "plain"] = np.nan
        frame.loc[rng.choice(n, 9, replace=False), "city"] = None
        frame.loc[rng.choice(n, 1), "square"] = np.nan
    return frame


def single_test(frame, x, y, **options):
    """Return the test of two columns by themselves."""
    kernels = {
        side: "gaussian" if pd.api.types.is_float_dtype(frame[name]) else "auto"
        for side, name in (("kernel_x", x), ("kernel_y", y))
    }
    both = frame[[x, y]].dropna()
    return hsic_test(both, x_columns=x, y_columns=y, bandwidth="median", threads=1, **kernels, **options)


def assert_same_kernel(found, expected):
    one, other = parse_kernel(found), parse_kernel(expected)
    assert one.name == other.name
    if hasattr(one, "bandwidth"):
        assert_close(one.bandwidth, other.bandwidth)


@pytest.mark.parametrize(("estimator", "holes"), [("unbiased", True), ("unbiased", False), ("biased", False)])
def test_every_pair_is_the_test_of_its_two_columns(estimator, holes):
    frame = mixed_frame(holes=holes)
    found = hsic_pairs(frame, estimator=estimator, permutations=100, threads=1)
    assert len(found.pairs) == math.comb(7, 2)
    for pair in found.pairs:
        alone = single_test(frame, pair.x, pair.y, estimator=estimator, null="moments")
        assert pair.n == alone.n == len(frame[[pair.x, pair.y]].dropna())
        assert_close(pair.p_value, alone.p_value)
        assert_close(pair.hsic_unbiased, alone.hsic_unbiased)
        assert_close(pair.hsic_biased, alone.hsic_biased)
        assert_close(pair.effect_size**2, alone.effect_size**2)
        assert_same_kernel(pair.kernel_x, alone.kernel_x)
        assert_same_kernel(pair.kernel_y, alone.kernel_y)
        assert pair.note is None


@pytest.mark.parametrize(("kernel", "bandwidth"), [("laplacian", "median"), ("gaussian", 0.5), ("matern(nu=2.5)", 2.0)])
def test_other_kernels_of_the_numbers(kernel, bandwidth):
    frame = mixed_frame()[["plain", "wide", "square"]]
    for pair in hsic_pairs(frame, kernel=kernel, bandwidth=bandwidth, permutations=50).pairs:
        alone = hsic_test(
            frame[[pair.x, pair.y]], kernel_x=kernel, kernel_y=kernel, bandwidth=bandwidth, null="moments"
        )
        assert_close(pair.p_value, alone.p_value)
        assert_close(pair.hsic_unbiased, alone.hsic_unbiased)
        assert_same_kernel(pair.kernel_x, alone.kernel_x)


@pytest.mark.parametrize("kernel", ["linear", "gaussian(0.7)", "polynomial(2)"])
def test_a_kernel_without_a_bandwidth_to_choose(kernel):
    frame = mixed_frame()[["plain", "wide", "city"]]
    found = {(pair.x, pair.y): pair for pair in hsic_pairs(frame, kernel=kernel, permutations=50).pairs}
    alone = hsic_test(frame[["plain", "wide"]], kernel_x=kernel, kernel_y=kernel, null="moments", scale="standardize")
    assert_close(found["plain", "wide"].p_value, alone.p_value)
    assert found["plain", "city"].p_value is not None


@pytest.mark.parametrize(("correction", "alpha"), [("holm", 0.05), ("bh", 0.3), ("none", 0.3)])
def test_p_values_are_corrected_for_all_pairs_and_ranked(correction, alpha):
    found = hsic_pairs(mixed_frame(holes=True), correction=correction, alpha=alpha, permutations=50)
    p = [pair.p_value for pair in found.pairs]
    assert p == sorted(p)
    assert found.tests == len(p) == 21
    assert [pair.reject for pair in found.pairs] == [pair.p_adjusted <= alpha for pair in found.pairs]
    assert found.rejected == sum(pair.reject for pair in found.pairs)
    assert found.reject == (found.rejected > 0)
    assert {found.pairs[0].x, found.pairs[0].y} in ({"plain", "square"}, {"city", "where"})


def test_the_family_is_every_pair_once_and_nothing_else():
    """A diagonal, or every pair twice, in the family makes the smallest p-values of the others significant."""
    names = [f"c{k}" for k in range(6)]
    rejections = 0
    for repetition in range(8):
        X = np.random.default_rng((41, repetition)).normal(size=(20, 6))
        found = hsic_pairs(pd.DataFrame(X, columns=names), correction="bh", permutations=20, threads=1)
        assert found.tests == len(found.pairs) == 15
        assert {frozenset((pair.x, pair.y)) for pair in found.pairs} == set(
            map(frozenset, itertools.combinations(names, 2))
        )
        assert all(pair.p_value > 0 for pair in found.pairs)
        rejections += found.reject
    assert rejections == 0 or bdtrc(rejections - 1, 8, 0.05) > FALSE_ALARM


def matrix_of(values, text):
    """Return the kernel matrix of a column: numbers scaled, others by their mismatches."""
    kernel = parse_kernel(text)
    if pd.api.types.is_float_dtype(values):
        x = values.to_numpy()
        return np.array(kernel(((x - x.mean()) / x.std())[:, None]))
    different = values.to_numpy()[:, None] != values.to_numpy()
    return np.where(different, math.exp(-1 / kernel.bandwidth), 1.0)


def relabelled(frame, pair, permutations, seed, *, estimator="unbiased", circle=None):
    """Return the statistic of a pair under every shift of every random order, by whole centred matrices."""
    rng, n = np.random.default_rng((seed, 0)), len(frame)
    circle = circle or n
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / circle))]
    K, L = (
        np.array(naive.centred[estimator](matrix_of(frame[name], text).tolist()))
        for name, text in ((pair.x, pair.kernel_x), (pair.y, pair.kernel_y))
    )
    scale = 1 / (n * (n - 3)) if estimator == "unbiased" else 1 / n**2
    values = []
    for order in places:
        for shift in range(circle):
            p = np.array(naive.partners(places[0].tolist(), order.tolist(), circle, shift))
            values.append(scale * np.vdot(K, L[np.ix_(p, p)]))
    return np.array(values)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("permutations", [13, 40])
def test_p_values_are_those_of_whole_matrices_under_every_relabelling(permutations, estimator):
    n, seed = 23, 7
    frame = mixed_frame(n)[["plain", "ties", "city", "square", "new"]]
    for pair in hsic_pairs(frame, estimator=estimator, permutations=permutations, seed=seed).pairs:
        values = relabelled(frame, pair, permutations, seed, estimator=estimator)
        assert pair.permutations == len(values)
        assert pair.p_permutation == np.mean(values >= values[0] - 1e-12)
        assert_close(values[0], pair.hsic_unbiased if estimator == "unbiased" else pair.hsic_biased)


def test_rows_beyond_a_circle_that_transforms_fast_keep_their_partner():
    """523 is a prime: 520 rows lie on the circle."""
    frame = mixed_frame(523)[["plain", "ties"]]
    (pair,) = hsic_pairs(frame, permutations=521, seed=3).pairs
    values = relabelled(frame, pair, 521, 3, circle=520)
    assert pair.permutations == len(values) == 1040
    assert pair.p_permutation == np.mean(values >= values[0] - 1e-12)


def test_pairs_of_columns_that_are_not_held_together_are_the_same():
    """Transforms are held for 32 columns at a time."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 40)) + rng.normal(size=(8, 1))
    X[:, 1] = np.round(X[:, 1])
    found = {(pair.x, pair.y): pair for pair in hsic_pairs(X, permutations=16, threads=1).pairs}
    assert len(found) == math.comb(40, 2)
    for a, b in ((0, 1), (1, 39), (31, 32), (38, 39), (3, 32)):
        (alone,) = hsic_pairs(X[:, [a, b]], permutations=16, threads=1).pairs
        pair = found[f"x{a + 1}", f"x{b + 1}"]
        assert (pair.p_permutation, pair.permutations) == (alone.p_permutation, alone.permutations)
        assert_close([pair.p_value, pair.hsic_biased], [alone.p_value, alone.hsic_biased])


def test_many_columns_are_done_a_square_of_matrices_at_a_time():
    """40 columns make three squares of up to 32 x 32 pairs: what is held does not grow with their number."""
    told = set()
    X = np.random.default_rng(5).normal(size=(8, 40))
    hsic_pairs(X, permutations=8, threads=1, progress=lambda done, steps: told.add((done, steps)))
    # One step for each column and each square.
    assert len(told) == 40 + 3


@pytest.mark.parametrize(("permutations", "columns"), [(25, 1), (60, 1), (60, 12)])
def test_with_a_target_step_down_p_values_are_those_of_the_table_of_all_relabellings(permutations, columns):
    n, seed = 25, 2
    frame = mixed_frame(n, 5)[["plain", "ties", "city", "square", "new"]]
    for k in range(1, columns):
        frame[f"noise{k}"] = np.random.default_rng(k).normal(size=n)
    found = hsic_pairs(frame, target="plain", permutations=permutations, seed=seed, threads=1)
    assert {pair.y for pair in found.pairs} == {"plain"}
    table = np.array([relabelled(frame, pair, permutations, seed) for pair in found.pairs])
    # -log p of a Pearson III curve through the mean, variance and skewness of the relabelled values.
    z = (table - table.mean(axis=1, keepdims=True)) / table.std(axis=1, keepdims=True)
    scored = [-pearson3.logsf(row, np.mean(row**3)) for row in z]
    assert_close([pair.p_step_down for pair in found.pairs], naive.step_down(scored))
    assert all(pair.p_step_down >= pair.p_permutation - 1e-12 for pair in found.pairs)


def test_equal_columns_are_ranked_in_the_order_of_the_table():
    """What rounding alone tells apart: which comes first must not hang on the processor."""
    frame = mixed_frame(40)[["plain", "square"]]
    copies = pd.DataFrame({name: frame["square"] * unit for name, unit in (("c", 3.0), ("a", 1.0), ("b", 1e-3))})
    found = hsic_pairs(copies.assign(plain=frame["plain"]), target="plain", permutations=50)
    assert [pair.x for pair in found.pairs] == ["c", "a", "b"]
    assert len({pair.p_step_down for pair in found.pairs}) == 1


def test_nothing_depends_on_threads_on_the_order_of_rows_or_on_units():
    frame = mixed_frame(80, holes=True)
    base = hsic_pairs(frame, target="square", permutations=200, threads=1)
    assert_same(hsic_pairs(frame, target="square", permutations=200, threads=2), base)
    # All pairs, in many sets of rows.
    one, two = (hsic_pairs(frame, permutations=50, threads=threads) for threads in (1, 2))
    assert_same(two, one)
    shuffled = hsic_pairs(frame.sample(frac=1, random_state=1), target="square", permutations=200)
    scaled = hsic_pairs(
        frame.assign(wide=frame["wide"] * 1000, square=3 - frame["square"]), target="square", permutations=200
    )
    for other in (shuffled, scaled):
        for one, pair in zip(base.pairs, other.pairs, strict=True):
            assert (pair.x, pair.n) == (one.x, one.n)
            np.testing.assert_allclose(pair.p_value, one.p_value, rtol=1e-7)
    assert [p.p_permutation for p in scaled.pairs] == [p.p_permutation for p in base.pairs]
    for one, pair in zip(base.pairs, shuffled.pairs, strict=True):
        # Within the Monte-Carlo error: five standard errors of the difference of two shares of 200.
        error = math.sqrt(2 * one.p_permutation * (1 - one.p_permutation) / 200)
        assert abs(pair.p_permutation - one.p_permutation) <= 5 * error + 2 / 200
    # The seed chooses relabellings, and p-values by moments have none.
    reseeded = hsic_pairs(frame, target="square", permutations=200, seed=9)
    assert_close([p.p_value for p in reseeded.pairs], [p.p_value for p in base.pairs])
    assert [p.p_permutation for p in reseeded.pairs] != [p.p_permutation for p in base.pairs]
