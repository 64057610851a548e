"""Passes over kernel matrices: a block of lags holds what a dense block holds, and blocks of lines make up whole matrices."""

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from hypothesis import given
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.inference.nulls.moments import centre
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices import passes
from kerntest.matrices.passes import (
    CentredProduct,
    Centring,
    LagPairs,
    plan_blocks,
    sweep,
)


def points_of(n, p, q):
    rng = np.random.default_rng((n, p, q))
    return Points(np.round(rng.normal(size=(n, p)), 1), rng.integers(0, 2, size=(n, q)))


def lag_pairs(points, count, start, stop):
    """Return the pairs (i, i + k) for start <= i < stop and k < count, and how to read them off a dense block."""
    pairs = LagPairs(points.take(slice(start, stop)), points.take(slice(start, stop + count - 1)), count)
    rows = np.arange(start, stop)[None, :].repeat(count, axis=0)
    return pairs, (rows, rows + np.arange(count)[:, None])


def norms(points):
    return (points.numeric**2).sum(axis=1) + points.codes.sum(axis=1)


QUANTITIES = {
    "inner_product": lambda pairs: pairs.inner_product(),
    "squared_distance": lambda pairs: pairs.squared_distance(),
    "manhattan": lambda pairs: pairs.manhattan(),
    "exponential_manhattan": lambda pairs: pairs.exponential_manhattan(0.7),
    "all_mismatches": lambda pairs: pairs.all_mismatches(),
    "at_x": lambda pairs: np.broadcast_to(pairs.at_x(norms(pairs.x)), pairs.shape),
    "at_y": lambda pairs: np.broadcast_to(pairs.at_y(norms(pairs.y)), pairs.shape),
}


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(("p", "q"), [(0, 1), (1, 0), (2, 3), (3, 0), (10, 3)])
@pytest.mark.parametrize("block", [(1, 0, 40), (7, 3, 41), (64, 5, 6)])
def test_every_quantity(quantity, p, q, block):
    count, start, stop = block
    points = points_of(110, p, q)
    pairs, places = lag_pairs(points, count, start, stop)
    dense, found = QUANTITIES[quantity](DensePairs(points, points)), QUANTITIES[quantity](pairs)
    assert found.shape == pairs.shape == (count, stop - start)
    assert_close(found, dense[places], scale=1.0 + np.abs(dense).max())


@pytest.mark.parametrize("far", [0.0, 40.0, 1e3, 1e300])
def test_exponentials_of_rows_near_and_far(far):
    """By powers of the rows as far as these neither overflow nor lose digits; equal rows give exactly 1."""
    points = points_of(60, 3, 0)
    points.numeric[7, 1] = far
    points.numeric[20] = points.numeric[23]
    pairs, places = lag_pairs(points, 9, 2, 44)
    with np.errstate(over="ignore"):
        found = pairs.exponential_manhattan(1.0)
        expected = np.exp(-np.abs(points.numeric[:, None] - points.numeric[None]).sum(axis=2))[places]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)
    assert found.max() == found[0].min() == found[3, 18] == 1.0


def test_exponentials_between_different_rows():
    """What is moved to the middle of some rows does not fit others."""
    first, second = points_of(12, 2, 0), points_of(14, 2, 0)
    second.numeric[:] += 3.0
    found = LagPairs(first, second, 3).exponential_manhattan(2.0)
    places = np.arange(3)[:, None] + np.arange(12)
    expected = np.exp(-np.abs(first.numeric - second.numeric[places]).sum(axis=2) / 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


# Sums over tiles and lines


@pytest.mark.parametrize("hollow", [None, False, True])
@pytest.mark.parametrize("n", [3, 16, 17, 90])
def test_sweep_by_dense_algebra(n, hollow, monkeypatch):
    """With small tiles, so that all kinds of tiles and, at 90 rows, several tiles a strip occur."""
    monkeypatch.setattr(passes, "TILE", 8 if n < 90 else 1)
    rng = np.random.default_rng(n)
    points, kernel = Points.of(rng.normal(size=(n, 2))), parse_kernel("polynomial(2)")
    vectors = rng.normal(size=(n, 3))
    M = kernel(points)
    centring = None
    if hollow is not None:
        centring = Centring(rng.normal(size=n), 0.3, hollow=hollow)
        M = M - centring.row[:, None] - centring.row[None, :] + centring.grand
    if hollow is not False:
        np.fill_diagonal(M, 0.0)
    found = sweep(kernel, points, vectors, Engine(1), centring=centring, third_order=True)
    assert_close(found.product, M @ vectors)
    assert_close(found.total_square, (M**2).sum())
    assert_close(found.squares[:, 0], (M**2).sum(axis=1))
    assert_close(found.cubes, (M**3).sum())
    plain = sweep(kernel, points, vectors, Engine(1), centring=centring)
    assert_close(plain.product, found.product, share=SAME_MACHINE)
    assert not plain.squares.any()
    assert plain.cubes == 0.0


@pytest.mark.parametrize("factor", [None, "gaussian(1.5)", "gaussian(1.5)*hamming(2)"])
@pytest.mark.parametrize("target", ["delta", "polynomial(2)"])
def test_the_product_of_a_centred_matrix_with_another(target, factor):
    x, y, goal = mixed_points(30, 1), mixed_points(30, 2), kernel_of(target)
    M = np.array(naive.u_centred(goal(y).tolist())) * (1.0 if factor is None else kernel_of(factor)(x))
    centring = centre(goal, y, Engine(1), hollow=True)[0]
    rows, kernel = CentredProduct.of(goal, y, centring, None if factor is None else (kernel_of(factor), x))
    found = kernel(rows)
    np.fill_diagonal(found, 0.0)
    assert_close(found, M)


@given(circle=st.integers(2, 3000), fixed=st.integers(0, 300), held=st.integers(2, 5000))
def test_blocks_of_many_matrices_cover_every_line_once(circle, fixed, held):
    blocks = plan_blocks(circle, fixed, held)
    for kind, lines in (("lags", circle // 2 + 1), ("fixed", fixed)):
        covered = [
            line for block in blocks if block.kind == kind for line in range(block.start, block.start + block.count)
        ]
        assert covered == list(range(lines))
    most = max(block.count for block in blocks)
    assert most <= 8 or most * circle * held <= passes.HELD_ENTRIES
