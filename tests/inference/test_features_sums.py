"""Contracts of the sums over rows that are never held: each number against naive loops over the features of all rows.

They look inside: blocks, samples and relabellings of features are nothing that a user can reach.
"""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from tolerances import assert_close

from kerntest import parse_kernel
from kerntest.data.facts import NumberFacts, counts_rows
from kerntest.inference.features.block_sums import Blocks, BlockSums, family_features, plan_blocks, random_places
from kerntest.inference.features.product_sums import ProductSums, SideFeatures, speaking_rows
from kerntest.inference.nulls.invariants import Invariants, permutation_moments
from kerntest.inference.relabelling.pairings import centred_matrix
from kerntest.inference.sides import ORDER_STREAM
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.groups import bind
from kerntest.matrices.factor import make_features


def rows_of(n, seed=0, offset=0.0):
    """Return rows of three numbers and a category; the third number follows the first."""
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, 3)) + offset
    numeric[:, 2] += (numeric[:, 0] - offset) ** 2
    return Points(numeric, rng.integers(0, 3, (n, 1)))


def summed(work, rows, source, cuts=()):
    """Return the sums over rows that come in parts."""
    total = np.zeros(work.shape(source))
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        work.add(total, rows.take(np.arange(start, stop)), source, start)
    return total


# The order of rows, and blocks


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 1))
def test_every_place_is_taken_once(n, seed, stream):
    places = random_places(np.arange(n), n, seed, stream)
    np.testing.assert_array_equal(np.sort(places), np.arange(n))
    some = np.arange(n)[:: max(1, n // 7)]
    np.testing.assert_array_equal(random_places(some, n, seed, stream), places[some])


def test_seeds_and_streams_have_orders_of_their_own_and_any_part_can_be_asked_for():
    rows = np.arange(1000)
    first = random_places(rows, 1000, 0, 0)
    for seed, stream in ((1, 0), (0, 1)):
        # Two random orders agree in one place on average.
        assert np.count_nonzero(first == random_places(rows, 1000, seed, stream)) < 10
    assert random_places(np.array([5, 10**12 - 1]), 10**12, 3, 1).max() < 10**12


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
    places = random_places(np.arange(n), n, 5, 0)
    assert abs(np.corrcoef(np.arange(n), places)[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 5 / np.sqrt(n)


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 30), st.integers(0, 9))
def test_blocks_have_the_sizes_that_they_say(n, size, fixed):
    free = min(12, n // size)
    beyond = n - free * size
    blocks = Blocks(n, free, size, min(beyond, max(fixed, beyond > 0)))
    found = np.bincount(blocks.of(np.arange(n)), minlength=blocks.count)
    np.testing.assert_array_equal(found, blocks.sizes())
    assert (found[:free] == size).all()
    assert (found > 0).all()
    assert blocks.fixed_rows == beyond


@pytest.mark.parametrize(
    ("n", "size"), [((200, 200), 1), ((1000, 1000), 2), ((5_000_000, 5_000_000), 10_000), ((10**7, 200), 4)]
)
def test_blocks_are_planned_for_any_sizes(n, size):
    blocks = plan_blocks(n, ("x", "y"))
    assert blocks[0].size == blocks[1].size == size
    assert [each.n for each in blocks] == list(n)
    assert all(50 <= each.free <= 2000 for each in blocks)


def test_few_rows_lie_beyond_whole_blocks():
    rng = np.random.default_rng(0)
    for n in rng.integers(10_000, 200_000, (20, 2)):
        blocks = plan_blocks(n.tolist(), ("x", "y"))
        assert sum(each.fixed_rows for each in blocks) < 0.005 * n.sum()


# Two samples

N = 230, 310
BLOCKS = Blocks(N[0], 20, 11, 4), Blocks(N[1], 28, 11, 1)
RELABELLINGS = 4


def blocked_and_features(kernel, features):
    """Return the sums over blocks of two files, and the features of every row."""
    x, y = rows_of(N[0], 0, 0.3), rows_of(N[1], 1)
    whole = Points(np.concatenate([x.numeric, y.numeric]), np.concatenate([x.codes, y.codes]))
    categories = ("city",) if "city" in kernel else ()
    both = ("city: delta; *: gaussian(3)", kernel) if categories else (kernel,)
    kernels = [bind(parse_kernel(one), ("a", "b", "c"), categories).kernel for one in both]
    sample = whole.take(np.random.default_rng(0).permutation(sum(N)))
    maps = family_features(features, kernels, sample, 0)
    work = BlockSums(maps, BLOCKS, 0)
    sums = [summed(work, x, 0, (100,)), summed(work, y, 1, (7, 200))]
    return work.blocked(len(maps) - 1, sums, sample), maps[-1].of_block(whole)


def explicit_estimates(Z, estimator):
    """Return the estimates of all relabellings from the features of every row."""
    block = np.concatenate(
        [blocks.of(random_places(np.arange(n), n, 0, k)) for k, (n, blocks) in enumerate(zip(N, BLOCKS, strict=True))]
    )
    block[N[0] :] += BLOCKS[0].count
    in_x = np.repeat([True, False], [each.count for each in BLOCKS])
    free = np.concatenate([np.arange(each.count) < each.free for each in BLOCKS])
    observed = in_x[free].astype(float)
    labellings = np.random.default_rng((0, ORDER_STREAM)).permuted(np.tile(observed, (RELABELLINGS, 1)), axis=1)
    labellings[0] = observed
    K, different = Z @ Z.T, block[:, None] != block[None, :]
    values = []
    for labelling in labellings:
        of_block = in_x.copy()
        of_block[free] = labelling == 1
        label = of_block[block]
        if estimator == "biased":
            values.append(naive.mmd2_biased(K, label.astype(int).tolist()))
            continue
        means = {}
        for first, left in (("x", label), ("y", ~label)):
            for second, right in (("x", label), ("y", ~label)):
                counted = different[np.ix_(left, right)]
                means[first + second] = (K[np.ix_(left, right)] * counted).sum() / counted.sum()
        values.append(means["xx"] + means["yy"] - means["xy"] - means["yx"])
    return np.array(values)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize(
    ("kernel", "features"),
    [
        ("city: hamming(1); *: gaussian(1.5)", "nystroem:30"),
        ("a: laplacian(2); city: delta; *: matern(1)", "nystroem:60"),
        ("city: hamming(1); *: linear", "nystroem:20"),
        ("student-t(2, df=3)", "fourier:50"),
    ],
)
def test_estimates_are_those_of_explicit_relabellings(kernel, features, estimator):
    blocked, Z = blocked_and_features(kernel, features)
    found, expected = blocked.relabelled(estimator, RELABELLINGS, 0), explicit_estimates(Z, estimator)
    assert_close(found, expected)
    assert_close(blocked.observed(estimator), found[0])
    assert np.ptp(found) > 0


def test_the_standard_error_is_that_of_means_of_blocks():
    blocked, _ = blocked_and_features("city: hamming(1); *: gaussian(1.5)", "nystroem:30")
    means = blocked.sums / blocked.sizes[:, None]
    x, y = blocked.in_x & blocked.free, ~blocked.in_x & blocked.free
    difference = blocked.sums[blocked.in_x].sum(axis=0) / N[0] - blocked.sums[~blocked.in_x].sum(axis=0) / N[1]
    variance = 4 * 11 * ((means[x] @ difference).var(ddof=1) / N[0] + (means[y] @ difference).var(ddof=1) / N[1])
    assert_close(blocked.effect().standard_error, np.sqrt(variance / blocked.observed("unbiased")) / 2)
    assert blocked.sizes.sum() == sum(N)


# Two variables

X, Y = Columns((0, 1), ()), Columns((2,), (0,))
PAIRS = [
    ("gaussian(1)", "gaussian(1) * hamming(1)"),
    ("linear", "laplacian(2) * delta"),
    ("matern(1)", "n2: gaussian(2); c0: delta"),
]
ESTIMATORS = pytest.mark.parametrize("estimator", ["unbiased", "biased"])


def products_of(
    rows,
    kernels=PAIRS[0],
    text="nystroem:20",
    *,
    columns=(X, Y),
    cuts=(),
    sample=None,
    estimator="unbiased",
    centred_on=None,
):
    """Return both matrices from sums over parts, and the features of every row; the centre is that of the first rows."""
    sides = []
    for kernel, some in zip(kernels, columns, strict=True):
        names = [f"n{k}" for k in some.numeric], [f"c{k}" for k in some.categories]
        chosen = rows.select(some)
        points = Points(chosen.numeric, chosen.codes)
        features = make_features(text, bind(parse_kernel(kernel), *names).kernel, points, 0)
        centre = features.of_block(points)[:centred_on].mean(axis=0)
        sides.append(SideFeatures(some, np.zeros(len(some.numeric)), features, centre))
    work = ProductSums(tuple(sides))
    gram = summed(work, rows, 0, cuts)
    values = [side(rows) + side.centre for side in sides]
    return work.pair(gram, rows if sample is None else sample, estimator), values


@pytest.mark.parametrize(
    ("kernels", "text"),
    [
        *zip(PAIRS, ["nystroem:7", "nystroem:40", "nystroem:40"], strict=True),
        (("gaussian(1)", "gaussian(2)"), "fourier:9"),
    ],
)
def test_every_number_is_that_of_the_explicit_matrices(text, kernels):
    rows = rows_of(40)
    columns = (X, Columns((2,), ())) if text.startswith("fourier") else (X, Y)
    pair, values = products_of(rows, kernels, text, columns=columns, cuts=(7, 20))
    K, L = ((Z @ Z.T).tolist() for Z in values)
    found = pair.effect()
    assert_close(found.biased, naive.hsic_biased(K, L))
    assert_close(found.unbiased, naive.hsic_unbiased(K, L))
    assert_close(found.effect_size, naive.hsic_effect(K, L))
    assert_close(pair.value * pair.factor, found.unbiased)


def dense_invariants(A):
    """Return the sums that `Invariants` names, from the matrix."""
    d, squared = np.diagonal(A), A @ A
    return Invariants(
        trace=d.sum(),
        trace_square=(A**2).sum(),
        diagonal_square=(d**2).sum(),
        diagonal_cube=(d**3).sum(),
        diagonal_with_square=d @ np.diagonal(squared),
        diagonal_form=d @ A @ d,
        trace_cube=np.trace(squared @ A),
        entry_cubes=(A**3).sum(),
    )


@ESTIMATORS
@pytest.mark.parametrize("kernels", PAIRS, ids=str)
def test_invariants_of_all_rows_are_exact(kernels, estimator):
    pair, values = products_of(rows_of(120), kernels, estimator=estimator)
    A, B = (centred_matrix(Z @ Z.T, estimator) for Z in values)
    for found, first, matrix in zip(pair.invariants(), pair.first_invariants(), (A, B), strict=False):
        expected = dense_invariants(matrix)
        for name in type(found).__slots__:
            assert_close(getattr(found, name), getattr(expected, name))
        assert_close([first.trace, first.trace_square], [expected.trace, expected.trace_square])
    off = A * B
    np.fill_diagonal(off, 0.0)
    assert_close(pair.squared_products(), (off**2).sum())


@ESTIMATORS
def test_a_centre_off_the_mean_changes_nothing(estimator):
    pair, values = products_of(rows_of(60), centred_on=3, estimator=estimator)
    A, B = (centred_matrix(Z @ Z.T, estimator) for Z in values)
    assert_close(pair.value, np.vdot(A, B))
    for found, matrix in zip(pair.invariants(), (A, B), strict=False):
        expected = dense_invariants(matrix)
        for name in type(found).__slots__:
            assert_close(getattr(found, name), getattr(expected, name), scale=1.0 + abs(getattr(expected, name)))


@ESTIMATORS
def test_a_sample_of_the_rows_moves_the_skewness_by_less_than_one_over_n(estimator):
    n, rows = 700, rows_of(700)
    pair, values = products_of(rows, sample=rows.take(np.arange(0, n, 5)), estimator=estimator)
    sampled = permutation_moments(*pair.invariants()[:2], n)
    exact = permutation_moments(*(dense_invariants(centred_matrix(Z @ Z.T, estimator)) for Z in values), n)
    assert_close(sampled.mean, exact.mean)
    assert_close(sampled.standard_deviation, exact.standard_deviation)
    assert exact.skewness > 0.3
    assert sampled.skewness == pytest.approx(exact.skewness, abs=1.0 / n)
    assert sampled.skewness != exact.skewness


@ESTIMATORS
def test_eigenvalues_are_those_of_the_matrix(estimator):
    pair, values = products_of(rows_of(150), estimator=estimator)
    A = centred_matrix(values[0] @ values[0].T, estimator)
    spectrum = pair.spectra()[0]
    found, exact = np.repeat(spectrum.values, spectrum.multiplicities.astype(int)), np.linalg.eigvalsh(A)
    assert found.sum() == pytest.approx(np.trace(A), abs=1e-8)
    # The diagonal of U(K) is taken for constant: off by a part of one row's share.
    tolerance = 1.0 if estimator == "unbiased" else 1e-9
    np.testing.assert_allclose(np.sort(found)[::-1][:10], exact[::-1][:10], rtol=0, atol=tolerance)


def test_the_rows_that_speak_for_the_sides_share_as_many_as_two_draws_from_all_rows():
    n, half, draws = 1000, 250, 60
    shared = []
    for seed in range(draws):
        first, second = speaking_rows(n, 2 * half, seed)
        assert len(np.unique(first)) == len(np.unique(second)) == len(first) == len(second) == half
        assert max(first.max(), second.max()) < 2 * half
        shared.append(len(np.intersect1d(first, second)))
    expected = hypergeom(n, half, half)
    # Five standard errors of a mean; a variance from 60 draws is known to a fifth.
    assert abs(np.mean(shared) - expected.mean()) < 5 * expected.std() / np.sqrt(draws)
    assert 0.3 < np.var(shared, ddof=1) / expected.var() < 2.5


def test_all_rows_speak_for_both_sides_where_all_are_sampled():
    both = speaking_rows(50, 50, 0)
    for rows in both:
        np.testing.assert_array_equal(np.sort(rows), np.arange(50))
    assert not np.array_equal(*both)


# Facts of columns


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
            for name in ("low", "high", "up", "down", "whole", "runs"):
                assert getattr(found, name) == getattr(whole, name)
        assert whole.counts_rows == counts_rows(values)
