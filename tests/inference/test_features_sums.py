"""Sums over rows that are never held: where features are all of a kernel, every number is that of the exact test.

What looks inside: the random order of rows, their blocks and samples are nothing that a user can reach.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from tolerances import assert_close
from two_samples import frames

from kerntest import hsic_test, mmd_test
from kerntest.data.facts import NumberFacts
from kerntest.inference.features.block_sums import Blocks, plan_blocks, random_places
from kerntest.inference.features.product_sums import speaking_rows
from kerntest.inference.sides import ORDER_STREAM

FEATURES = {"method": "features", "threads": 1}


def numbers_of(result, *names):
    null = result.null
    return [getattr(result, name) for name in names], [null.mean, null.standard_deviation, null.skewness]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 1))
def test_every_place_is_taken_once(n, seed, stream):
    places = random_places(np.arange(n), n, seed, stream)
    np.testing.assert_array_equal(np.sort(places), np.arange(n))
    np.testing.assert_array_equal(random_places(np.arange(n)[::7], n, seed, stream), places[::7])
    assert random_places(np.array([5, 10**12 - 1]), 10**12, seed, stream).max() < 10**12


# The order of rows, and blocks


@pytest.mark.parametrize("n", [3000, 4096, 70_000])
def test_neighbours_are_spread_over_all_blocks(n):
    """Any run of rows falls into the blocks like a sample without replacement: hypergeometric counts."""
    blocks, part = 30, n // 10
    for start in (0, n // 3, n - part):
        found = np.bincount(random_places(np.arange(start, start + part), n, 0, 0) * blocks // n, minlength=blocks)
        expected = part / blocks
        chi_square = float(np.sum((found - expected) ** 2) / expected) / (1 - part / n)
        # Chi-square with 29 degrees of freedom lies in here but once in 10,000.
        assert 8.0 < chi_square < 68.0
    places, *others = [random_places(np.arange(n), n, seed, stream) for seed, stream in ((5, 0), (6, 0), (5, 1))]
    for one, other in ((np.arange(n), places), (places[1:], places[:-1]), *((places, other) for other in others)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(n)


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 30), st.integers(0, 9))
def test_blocks_have_the_sizes_that_they_say(n, size, fixed):
    free = min(12, n // size)
    beyond = n - free * size
    blocks = Blocks(n, free, size, min(beyond, max(fixed, beyond > 0)))
    found = np.bincount(blocks.of(np.arange(n)), minlength=len(blocks.sizes))
    np.testing.assert_array_equal(found, blocks.sizes)
    assert (found[:free] == size).all()
    assert (found > 0).all()
    assert blocks.fixed_rows == beyond


def test_blocks_are_planned_for_any_sizes_with_few_rows_beyond_them():
    known = [((200, 200), 1), ((1000, 1000), 2), ((5_000_000, 5_000_000), 10_000), ((10**7, 200), 4)]
    drawn = [(tuple(n), None) for n in np.random.default_rng(0).integers(10_000, 200_000, (20, 2)).tolist()]
    for n, size in known + drawn:
        blocks = plan_blocks(n, ("x", "y"))
        assert blocks[0].size == blocks[1].size == (size or blocks[0].size)
        assert tuple(each.n for each in blocks) == n
        assert all(50 <= each.free <= 2000 for each in blocks)
        assert size or sum(each.fixed_rows for each in blocks) < 0.005 * sum(n)


# Two samples

N = 12_003, 221


def estimate(sums, sizes, in_x, estimator):
    """Return MMD^2 for the linear kernel from sums of rows over blocks: of pairs of different blocks where unbiased."""
    same, between = 0.0, 2.0
    for side in (in_x, ~in_x):
        own = [(sums[side] ** 2).sum(), (sizes[side] ** 2).sum()] if estimator == "unbiased" else [0.0, 0.0]
        same += ((sums[side].sum(axis=0) ** 2).sum() - own[0]) / (sizes[side].sum() ** 2 - own[1])
        between = between * sums[side].sum(axis=0) / sizes[side].sum()
    return same - between.sum()


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_relabelled_blocks_are_those_of_explicit_rows(estimator):
    rng, relabellings = np.random.default_rng(0), 8
    x, y = rng.normal(2.0, 1.0, (N[0], 2)), rng.normal(2.2, 1.0, (N[1], 2))
    # A linear kernel, but for its name: that one would be given another origin.
    options = {"kernel": "polynomial(1)", "scale": "none", "features": "nystroem:9", "permutations": relabellings}
    found = mmd_test(x, y, **options, estimator=estimator, alpha=0.5, **FEATURES)
    plan = plan_blocks(N, ("x", "y"))
    sums, sizes = [], []
    for stream, (rows, one) in enumerate(zip((x, y), plan, strict=True)):
        block = one.of(random_places(np.arange(one.n), one.n, 0, stream))
        sums.append(np.stack([np.bincount(block, column) for column in rows.T], axis=1))
        sizes.append(np.bincount(block).astype(float))
    sums, sizes = np.concatenate(sums), np.concatenate(sizes)
    in_x = np.repeat([True, False], [len(each.sizes) for each in plan])
    free = np.concatenate([np.arange(len(each.sizes)) < each.free for each in plan])
    assert 0 < np.count_nonzero(~free) < found.approximation.fixed_rows == sizes[~free].sum()
    drawn = np.random.default_rng((0, ORDER_STREAM)).permuted(np.tile(in_x[free], (relabellings, 1)), axis=1)
    drawn[0] = in_x[free]
    values = []
    for labelling in drawn:
        label = in_x.copy()
        label[free] = labelling
        values.append(estimate(sums, sizes, label, estimator))
    assert_close(found.statistic, values[0], scale=1.0)
    assert_close(found.null.mean, np.mean(values), scale=1.0)
    assert_close(found.null.standard_deviation, np.std(values), scale=1.0)
    assert found.p_value == pytest.approx(np.mean(np.array(values) >= values[0] - 1e-9))
    witness = (sums / sizes[:, None]) @ (x.mean(axis=0) - y.mean(axis=0))
    spread = sum(witness[free & side].var(ddof=1) / n for side, n in zip((in_x, ~in_x), N, strict=True))
    assert_close(found.mmd_standard_error, np.sqrt(plan[0].size * spread / found.mmd2_unbiased), condition=1e3)


@pytest.mark.parametrize(
    "kernel",
    [
        "price: linear; weight: linear; city, new: hamming",
        "price, weight: polynomial(2); city: delta",
        "new, city: delta",
    ],
)
@pytest.mark.parametrize("null", ["moments", "gamma", "spectral"])
def test_features_that_are_all_of_a_kernel_give_the_exact_test_of_two_samples(kernel, null):
    names = ("mmd2_unbiased", "mmd2_biased", "effect_size")
    options = {"kernel": kernel, "null": null, "estimator": "biased"}
    exact = mmd_test(*frames(500, 430), **options)
    found = mmd_test(*frames(500, 430), **options, features="nystroem:60", **FEATURES)
    (values, moments), (expected, of_exact) = (numbers_of(found, *names), numbers_of(exact, *names))
    assert_close(values, expected, condition=100)
    np.testing.assert_allclose(moments, of_exact, rtol=1e-6)
    np.testing.assert_allclose(np.log(found.p_value), np.log(exact.p_value), rtol=1e-6)


# Two variables


def dependent(n):
    x, _ = frames(n, 1)
    return x.assign(other=x["price"] ** 2 + 0.3 * x["weight"], far=1e3 + x["weight"] + x["new"])


PAIRS = {
    "numbers": ("linear", "linear", "price", "other"),
    "several": ("polynomial(2)", "linear", "price,weight", "other,far"),
    "mixed": ("price: linear; city: delta", "far: polynomial(3); new: delta", "price,city", "far,new"),
}


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("null", ["moments", "gamma", "spectral"])
@pytest.mark.parametrize("pair", PAIRS)
def test_features_that_are_all_of_both_kernels_give_the_exact_test(pair, null, estimator):
    kernel_x, kernel_y, x, y = PAIRS[pair]
    options = {"kernel_x": kernel_x, "kernel_y": kernel_y, "x_columns": x, "y_columns": y, "estimator": estimator}
    if null == "spectral":
        # The eigenvalues of U(K) are those of a constant diagonal, which these kernels do not have.
        options["estimator"] = "biased"
    exact = hsic_test(dependent(400), **options, null=null)
    found = hsic_test(dependent(400), **options, null=null, features="nystroem:40", **FEATURES)
    names = ("hsic_unbiased", "hsic_biased", "effect_size", "statistic")
    (values, moments), (expected, of_exact) = (numbers_of(found, *names), numbers_of(exact, *names))
    assert_close(values, expected, condition=100)
    np.testing.assert_allclose(moments, of_exact, rtol=1e-6, atol=1e-9 * of_exact[1])
    np.testing.assert_allclose(np.log(found.p_value), np.log(exact.p_value), rtol=1e-6)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_a_sample_of_the_rows_moves_the_skewness_by_less_than_one_over_n(estimator):
    """What is chosen on a sample, the centre among it, moves nothing else."""
    kernels = {"kernel_x": "price: linear; city: delta", "kernel_y": "new: delta"}
    options = {"x_columns": "price,city", "y_columns": "new", "estimator": estimator} | kernels
    exact = hsic_test(dependent(2600), **options, null="moments")
    found = hsic_test(dependent(2600), **options, features="nystroem:60", **FEATURES)
    assert found.approximation.rows_sampled == 2000
    names = ("hsic_unbiased", "hsic_biased", "effect_size")
    (values, moments), (expected, of_exact) = (numbers_of(found, *names), numbers_of(exact, *names))
    assert_close(values, expected, condition=1000)
    np.testing.assert_allclose(moments[:2], of_exact[:2], rtol=1e-5, atol=1e-9 * of_exact[1])
    assert moments[2] == pytest.approx(of_exact[2], abs=1.0 / 2600)
    assert moments[2] != of_exact[2]


def test_the_rows_that_speak_for_the_sides_share_as_many_as_two_draws_from_all_rows():
    n, half, draws, shared = 1000, 250, 60, []
    for seed in range(draws):
        both = speaking_rows(n, 2 * half, seed)
        assert [len(np.unique(some)) for some in both] == [len(some) for some in both] == [half, half]
        assert np.max(both) < 2 * half
        shared.append(len(np.intersect1d(*both)))
    expected = hypergeom(n, half, half)
    # Five standard errors of a mean; a variance from 60 draws is known to a fifth.
    assert abs(np.mean(shared) - expected.mean()) < 5 * expected.std() / np.sqrt(draws)
    assert 0.3 < np.var(shared, ddof=1) / expected.var() < 2.5
    both = speaking_rows(50, 50, 0)
    assert not np.array_equal(*both)
    np.testing.assert_array_equal(np.sort(both), np.tile(np.arange(50), (2, 1)))


def test_facts_about_numbers_do_not_depend_on_the_pieces():
    rng = np.random.default_rng(0)
    for values in (rng.normal(1e9, 1.0, 500), np.arange(500.0), -np.arange(500.0), np.repeat([1.0, 2.0, 3.0], 200)):
        whole = NumberFacts.of(values)
        for cuts in ([250], [1, 2, 3], np.arange(50, len(values), 50)):
            found, *others = [NumberFacts.of(part) for part in np.split(values, cuts)]
            for later in others:
                found.add(later)
            assert_close(found.mean, values.mean())
            assert_close(np.sqrt(found.squares / found.count), values.std())
            for name in ("low", "high", "up", "down", "whole", "runs", "counts_rows"):
                assert getattr(found, name) == getattr(whole, name)


# Facts of columns
