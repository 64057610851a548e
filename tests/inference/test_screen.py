"""All pairs of a table: each is the single test of its two columns, and all together have the right level."""

import itertools
import math

import naive
import numpy as np
import pandas as pd
import pytest
from same_results import assert_same
from scipy.special import bdtr, bdtrc
from tolerances import assert_close

from kerntest import hsic_pairs, hsic_test
from kerntest.engines.local import LocalEngine
from kerntest.inference import screening
from kerntest.inference.nulls.permutation import scores
from kerntest.inference.relabelling import shifts
from kerntest.inference.screening import ScreenOptions, screen
from kerntest.inference.sides import Variable
from kerntest.inference.statistic import factor
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ENGINE = LocalEngine(1)
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


@pytest.mark.thorough
def test_the_chance_of_any_false_finding_stays_within_the_level():
    repetitions = 200
    smallest = np.empty(repetitions)
    for repetition in range(repetitions):
        rng = np.random.default_rng((43, repetition))
        X = np.column_stack([rng.normal(size=16), rng.lognormal(size=16), rng.integers(0, 3, 16)])
        found = hsic_pairs(X, permutations=16, seed=repetition, threads=1)
        smallest[repetition] = found.pairs[0].p_adjusted
    for alpha in (0.01, 0.05, 0.1, 0.2):
        rejections = np.sum(smallest <= alpha)
        assert rejections == 0 or bdtrc(rejections - 1, repetitions, alpha) > FALSE_ALARM, alpha
    # Not by never rejecting at all.
    assert bdtr(np.sum(smallest <= 0.5), repetitions, 0.3) > FALSE_ALARM


def variables_of(frame):
    """Return one variable for each column: numbers scaled, others as codes."""
    variables = []
    for name in frame.columns:
        if pd.api.types.is_float_dtype(frame[name]):
            x = frame[name].to_numpy()
            points = Points.of((x - x.mean()) / x.std())
            variables.append(Variable(points, np.zeros(1), np.ones(1), (name,), ()))
        else:
            codes, levels = pd.factorize(frame[name], sort=True)
            points = Points(np.empty((len(codes), 0)), codes[:, None])
            variables.append(Variable(points, np.zeros(0), np.zeros(0), (), (name,), (tuple(map(str, levels)),)))
    return variables


def expected_values(K, L, places, circle, estimator):
    """Return the estimate under every shift of every order, by whole centred matrices."""
    A, B = (np.array(naive.centred[estimator](M.tolist())) for M in (K, L))
    values = []
    for order in places:
        for shift in range(circle):
            p = np.array(naive.partners(places[0].tolist(), order.tolist(), circle, shift))
            values.append(factor(len(K), estimator) * np.vdot(A, B[p][:, p]))
    return np.array(values)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("small_circle", [False, True], ids=["whole circle", "fixed rows"])
@pytest.mark.parametrize("permutations", [13, 40])
def test_every_relabelled_value_is_that_of_whole_matrices(permutations, small_circle, estimator, monkeypatch):
    if small_circle:
        monkeypatch.setattr(shifts, "SMALL_CIRCLE", 5)
        monkeypatch.setattr(shifts, "LARGEST_FACTOR", 5)
        monkeypatch.setattr(screening, "TOGETHER", 3)
    n, seed = 23, 7
    variables = variables_of(mixed_frame(n)[["plain", "ties", "city", "square", "new"]])
    circle = shifts.circle_length(n)
    assert (circle < n) == small_circle
    pairs = [(0, 3), (2, 4), (0, 1), (1, 2), (3, 4), (4, 0)]
    options = ScreenOptions("gaussian", "median", estimator, permutations, seed)
    found, kernels = screen(variables, pairs, options, ENGINE, keep=True)
    rng = np.random.default_rng((seed, 0))
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / circle))]
    matrices = [kernel(one.points) for kernel, one in zip(kernels, variables, strict=True)]
    for (a, b), one in zip(pairs, found, strict=True):
        expected = expected_values(matrices[a], matrices[b], places, circle, estimator)
        assert_close(one.relabelled, expected)
        assert one.permutations == len(places) * circle
        assert one.p_permutation == np.mean(expected >= expected[0] - 1e-12)
        values = {
            name: naive.matrix_inner(*(naive.centred[name](matrices[k].tolist()) for k in (a, b)))
            for name in ESTIMATORS
        }
        assert_close(one.unbiased, values["unbiased"] * factor(n, "unbiased"))
        assert_close(one.biased, values["biased"] * factor(n, "biased"))
        effect = naive.hsic_effect(matrices[a].tolist(), matrices[b].tolist())
        assert_close(one.effect_size, effect)
    assert str(kernels[2]) == str(parse_kernel("hamming(1)"))


def test_the_permutation_p_value_agrees_with_random_permutations():
    frame = mixed_frame(30)[["plain", "ties", "city", "square"]]
    for pair in hsic_pairs(frame, permutations=MANY_RANDOM, threads=1).pairs:
        other = single_test(frame, pair.x, pair.y, permutations=MANY_RANDOM, resampling="random", seed=1)
        spread = math.sqrt(2 * other.p_value * (1 - other.p_value) / MANY_RANDOM)
        assert pair.p_permutation == pytest.approx(other.p_value, abs=5 * spread + 2 / MANY_RANDOM)
        assert pair.permutations >= MANY_RANDOM


def test_two_columns_have_the_permutation_p_value_of_the_test():
    frame = mixed_frame(40)
    for x, y in (("plain", "square"), ("city", "where"), ("ties", "new")):
        (pair,) = hsic_pairs(frame[[x, y]], permutations=40, seed=3).pairs
        assert pair.p_permutation == single_test(frame, x, y, permutations=40, seed=3).p_value
        assert pair.permutations == 40


@pytest.mark.parametrize("options", [{}, {"target": "plain"}, {"estimator": "biased"}], ids=["all", "target", "biased"])
def test_squares_of_few_columns_give_the_same(options, monkeypatch):
    # Step-down p-values need relabellings that all columns share.
    frame = mixed_frame(holes="target" not in options)[["plain", "wide", "city", "new", "square"]]
    whole = hsic_pairs(frame, permutations=100, threads=1, **options)
    for together in (1, 3):
        monkeypatch.setattr(screening, "TOGETHER", together)
        parts = hsic_pairs(frame, permutations=100, threads=1, **options)
        for one, other in zip(whole.pairs, parts.pairs, strict=True):
            assert (one.x, one.y, one.p_permutation, one.p_step_down) == (
                other.x,
                other.y,
                other.p_permutation,
                other.p_step_down,
            )
            assert_close(other.p_value, one.p_value)
            np.testing.assert_allclose(other.effect_size, one.effect_size, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr(screening, "TOGETHER", 32)
    monkeypatch.setattr(screening, "HELD_NUMBERS", 200)
    fewer = hsic_pairs(frame, permutations=100, threads=1, **options)
    assert [pair.p_permutation for pair in fewer.pairs] == [pair.p_permutation for pair in whole.pairs]


def naive_step_down(table):
    """Return p-values of Westfall and Young (1993, algorithm 4.1), one maximum at a time."""
    order = sorted(range(len(table)), key=lambda k: -table[k][0])
    result, largest = [None] * len(table), 0.0
    for place, k in enumerate(order):
        maxima = [max(table[j][r] for j in order[place:]) for r in range(len(table[0]))]
        largest = max(largest, sum(m >= table[k][0] for m in maxima) / len(maxima))
        result[k] = largest
    return result


@pytest.mark.parametrize("permutations", [25, 60])
def test_with_a_target_step_down_p_values_are_those_of_the_table_of_all_relabellings(permutations):
    n, seed = 25, 2
    frame = mixed_frame(n, 5)[["plain", "ties", "city", "square", "new"]]
    found = hsic_pairs(frame, target="plain", permutations=permutations, seed=seed, threads=1)
    assert {pair.y for pair in found.pairs} == {"plain"}
    variables = variables_of(frame)
    rng = np.random.default_rng((seed, 0))
    places = [rng.permutation(n) for _ in range(math.ceil(permutations / n))]
    kernels = {pair.x: pair.kernel_x for pair in found.pairs} | {"plain": found.pairs[0].kernel_y}
    matrices = {
        name: parse_kernel(kernels[name])(one.points) for name, one in zip(frame.columns, variables, strict=True)
    }
    others = [name for name in frame.columns if name != "plain"]
    table = np.array([expected_values(matrices[x], matrices["plain"], places, n, "unbiased") for x in others])
    scored = scores(table, np.full(len(others), 1e-13))[0]
    expected = dict(zip(others, naive_step_down(scored.tolist()), strict=True))
    for pair in found.pairs:
        assert_close(pair.p_step_down, expected[pair.x])
        assert pair.p_step_down >= pair.p_permutation - 1e-12


def test_equal_columns_are_ranked_in_the_order_of_the_table():
    """What rounding alone tells apart: which comes first must not hang on the processor."""
    frame = mixed_frame(40)[["plain", "square"]]
    copies = pd.DataFrame({name: frame["square"] * unit for name, unit in (("c", 3.0), ("a", 1.0), ("b", 1e-3))})
    found = hsic_pairs(copies.assign(plain=frame["plain"]), target="plain", permutations=50)
    assert [pair.x for pair in found.pairs] == ["c", "a", "b"]
    assert len({pair.p_step_down for pair in found.pairs}) == 1


def test_without_a_target_there_is_no_step_down():
    assert all(pair.p_step_down is None for pair in hsic_pairs(mixed_frame(), permutations=50).pairs)


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
