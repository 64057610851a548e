"""The two-sample statistic under permutations of blocks of rows, against double loops over dense matrices."""

import math
from itertools import combinations

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.engines.local import LocalEngine
from kerntest.inference.nulls.permutation import ROUNDING_UNITS, tie_tolerance
from kerntest.inference.permuted_blocks import FEWEST, MOST, BlockedRows, block_sums, factor_sums, relabelled_sums
from kerntest.inference.statistic import label_matrix
from kerntest.kernels.base import Points
from kerntest.kernels.columns import bind
from kerntest.kernels.stationary import Gaussian, Laplacian
from kerntest.kernels.text import parse_kernel
from kerntest.matrices.factor import low_rank_factor


def labels_of(n_x, n_y):
    return np.random.default_rng(n_x).permutation(np.repeat([1, 0], [n_x, n_y])).astype(np.uint8)


def dense_sums(kernel, points, blocks):
    K = kernel(points)[np.ix_(blocks.order, blocks.order)]
    np.fill_diagonal(K, 0.0)
    of = np.repeat(np.arange(len(blocks.in_x)), np.diff(blocks.starts))
    inside = (of[:, None] == np.arange(len(blocks.in_x))).astype(float)
    return inside.T @ K @ inside


SIZES = [(2, 2), (3, 5), (40, 33), (5, 400), (600, 41), (700, 650)]


@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_every_row_is_in_one_block_of_its_own_file(n_x, n_y):
    labels = labels_of(n_x, n_y)
    blocks = BlockedRows.of(labels, 1)
    assert sorted(blocks.order) == list(range(n_x + n_y))
    sizes = np.diff(blocks.starts)
    assert len(set(sizes[: blocks.free])) == 1
    of = np.repeat(blocks.in_x, sizes)
    assert (labels[blocks.order] == of).all()
    moved = blocks.in_x[: blocks.free]
    assert moved.sum() <= MOST
    assert min(moved.sum(), (~moved).sum()) >= min(FEWEST, n_x, n_y)


def test_a_file_of_few_rows_moves_every_one_of_them():
    blocks = BlockedRows.of(labels_of(5, 4000), 0)
    assert blocks.in_x[: blocks.free].sum() == 5
    assert (~blocks.in_x[: blocks.free]).sum() == MOST
    assert np.diff(blocks.starts)[-1] == 4000 - MOST


@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_sums_are_those_of_dense_matrices(n_x, n_y):
    rng = np.random.default_rng(n_y)
    points = Points(rng.normal(size=(n_x + n_y, 3)), rng.integers(0, 3, size=(n_x + n_y, 1)))
    blocks = BlockedRows.of(labels_of(n_x, n_y), 2)
    kernels = [Gaussian(2.0), Gaussian(1.0), Laplacian(1.0), bind(parse_kernel("additive(1)"), "abc", "d").kernel]
    found = block_sums(kernels, points, blocks, LocalEngine(2))
    for one, kernel in zip(found, kernels, strict=True):
        assert_close(one + one.T, 2 * dense_sums(kernel, points, blocks))


def test_blocks_larger_than_a_tile(monkeypatch):
    monkeypatch.setattr("kerntest.inference.permuted_blocks.TILE", 7)
    points = Points.of(np.random.default_rng(0).normal(size=(120, 2)))
    monkeypatch.setattr("kerntest.inference.permuted_blocks.BLOCKS", 6)
    monkeypatch.setattr("kerntest.inference.permuted_blocks.FEWEST", 2)
    blocks = BlockedRows.of(labels_of(63, 57), 0)
    assert blocks.starts[1] == 20
    found = block_sums([Gaussian(1.0)], points, blocks, LocalEngine(1))[0]
    assert_close(found + found.T, 2 * dense_sums(Gaussian(1.0), points, blocks))


@pytest.mark.parametrize("text", ["gaussian(2)", "additive(1.5, 2)"])
def test_sums_of_a_factor(text):
    rng = np.random.default_rng(3)
    points = Points(rng.normal(size=(500, 2 if "additive" in text else 1)), rng.integers(0, 4, size=(500, 1)))
    names = ("a", "b")[: points.numeric.shape[1]]
    kernel = bind(parse_kernel(text), names, ("c",) if "additive" in text else ()).kernel
    points = points if "additive" in text else Points.of(points.numeric)
    blocks = BlockedRows.of(labels_of(300, 200), 0)
    factor = low_rank_factor(kernel, points)
    assert factor is not None
    assert_close(factor_sums(factor, points, kernel, blocks), dense_sums(kernel, points, blocks))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize(("n_x", "n_y"), [(6, 9), (40, 300)])
def test_every_relabelling_has_the_statistic_of_its_labels(n_x, n_y, estimator):
    points = Points.of(np.random.default_rng(4).normal(size=(n_x + n_y, 2)))
    labels = labels_of(n_x, n_y)
    blocks, label = BlockedRows.of(labels, 5), label_matrix(n_x, n_y, estimator)
    moved = blocks.relabellings(40, 5)
    kernel = Gaussian(1.0)
    sums = block_sums([kernel], points, blocks, LocalEngine(1))
    found = relabelled_sums(
        sums, blocks.summed(kernel.diagonal(points))[None], label, blocks, moved, engine=LocalEngine(1)
    )
    K, estimate = kernel(points), {"unbiased": naive.mmd2_unbiased, "biased": naive.mmd2_biased}[estimator]
    for g in (0, 1, 7, 39):
        relabelled = np.empty(n_x + n_y, dtype=int)
        in_x = np.concatenate([moved[g], blocks.in_x[blocks.free :]])
        relabelled[blocks.order] = np.repeat(in_x, np.diff(blocks.starts))
        assert label.factor * found[0, g] == pytest.approx(estimate(K, relabelled), rel=1e-9, abs=1e-12)
    assert label.factor * found[0, 0] == pytest.approx(estimate(K, labels), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("gaussian(1.5)", 0.0),
        ("gaussian(1.5)", 1e6),
        ("laplacian(0.01)", 0.0),
        ("laplacian(0.7)", 1e6),
        ("linear", 0.0),
        ("linear", 1e6),
        ("polynomial(3)", 0.0),
        ("polynomial(3)", 1e6),
        ("exponential(0.2)", 0.0),
    ],
)
def test_rounding_stays_far_below_the_tolerance_for_ties(text, offset, estimator):
    n_x, n_y = 150, 210
    n, kernel = n_x + n_y, kernel_of(text)
    points = mixed_points(n, 7)
    points = Points(points.numeric + offset, points.codes)
    blocks, label = BlockedRows.of(labels_of(n_x, n_y), 5), label_matrix(n_x, n_y, estimator)
    moved = blocks.relabellings(10, 5)
    sums = block_sums([kernel], points, blocks, LocalEngine(1))
    diagonals = blocks.summed(kernel.diagonal(points))[None]
    found = relabelled_sums(sums, diagonals, label, blocks, moved, engine=LocalEngine(1))[0]
    # The same in extended precision.
    K = kernel(points)[np.ix_(blocks.order, blocks.order)].astype(np.longdouble)
    exact = []
    for chosen in moved:
        relabelled = np.repeat(np.concatenate([chosen, blocks.in_x[blocks.free :]]), np.diff(blocks.starts)).astype(int)
        B = label.between[relabelled[:, None] + relabelled].astype(np.longdouble)
        np.fill_diagonal(B, label.diagonal[relabelled])
        exact.append(float((K * B).sum()))
    tolerance = tie_tolerance(float(kernel.diagonal(points).max()), n, float(n))
    assert np.abs(found - exact).max() < tolerance / ROUNDING_UNITS


def test_few_rows_have_all_relabellings_each_once():
    blocks = BlockedRows.of(labels_of(3, 4), 0)
    moved = blocks.relabellings(1000, 0)
    assert len(moved) == math.comb(7, 3) == len({tuple(row) for row in moved})
    assert (moved[0] == blocks.in_x[: blocks.free]).all()
    assert (moved.sum(axis=1) == 3).all()
    # Few are all used however few were asked for; of many rows there are as many as were asked for.
    assert len(blocks.relabellings(20, 0)) == len(moved)
    many = BlockedRows.of(labels_of(10, 12), 0)
    random = many.relabellings(20, 0)
    assert random.shape == (20, 22)
    assert (random[0] == many.in_x[: many.free]).all()
    assert (random.sum(axis=1) == 10).all()


@pytest.mark.parametrize("judge", ["together", "smallest"])
def test_over_all_relabellings_the_p_values_are_uniform(judge):
    """The rank of every split of eight rows among all splits: exactness, the hard way."""
    rows = np.random.default_rng(6).normal(size=(8, 2))
    p = []
    for chosen in combinations(range(8), 3):
        x = rows[list(chosen)]
        y = rows[[row for row in range(8) if row not in chosen]]
        p.append(
            mmd_test(x, y, kernel="gaussian + 0.1*laplacian", bandwidth=(0.3, 1, 3), judge=judge, scale="none").p_value
        )
    splits = math.comb(8, 3)
    ranks = sorted(np.rint(np.array(p) * splits).astype(int).tolist())
    # Splits of which no kernel sees more than on average are all alike to the family, and the last.
    told = splits if judge == "smallest" else ranks.index(splits)
    assert told >= splits // 2 - 1
    assert ranks == [*range(1, told + 1), *[splits] * (splits - told)]
