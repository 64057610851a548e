"""Passes over kernel matrices: a block of lags holds what a dense block holds, and blocks of lines make up whole matrices."""

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.inference.nulls.moments import centre
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices import passes
from kerntest.matrices.passes import (
    Block,
    CentredProduct,
    Centring,
    KernelStack,
    LagPairs,
    LaidOut,
    add_row_sums,
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


@pytest.mark.parametrize("p", [2, 3])
def test_distances_far_from_the_origin_keep_their_digits(p):
    near = points_of(80, p, 0)
    pairs, places = lag_pairs(Points(near.numeric + 1e7, near.codes), 20, 0, 60)
    expected = DensePairs(near, near).squared_distance()[places]
    np.testing.assert_allclose(pairs.squared_distance(), expected, rtol=1e-6, atol=1e-6)


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


@pytest.mark.parametrize("tile", [1, 50, 2**16])
@pytest.mark.parametrize(("n", "circle"), [(17, 17), (30, 24), (300, 300), (301, 270)])
def test_tiles_of_all_blocks_hold_the_whole_matrix(n, circle, tile, monkeypatch):
    """Every unordered pair with a row on the circle: once, but the halved lines of the middle lag twice."""
    monkeypatch.setattr(passes, "TILE_ENTRIES", tile)
    rows, seen = LaidOut(Points.of(np.arange(n)), circle), np.zeros((n, n))
    for block in plan_blocks(circle, n - circle):
        weights = np.ones((block.count, 1))
        weights[block.halved(circle)] = 0.5
        filled = np.zeros(circle, dtype=int)
        for pairs, columns in rows.tiles(block):
            left = np.broadcast_to(pairs.at_x(pairs.x.numeric[:, 0]), pairs.shape).astype(int)
            right = np.broadcast_to(pairs.at_y(pairs.y.numeric[:, 0]), pairs.shape).astype(int)
            for places in ((left, right), (right, left)):
                np.add.at(seen, places, np.broadcast_to(weights, pairs.shape))
            filled[columns] += 1
        assert (filled == 1).all()
    expected = np.ones((n, n))
    expected[circle:, circle:] = 0
    np.testing.assert_array_equal(seen, expected)


# The product of a centred kernel matrix with another


def centred_product(factor, target, order, circle):
    """Return the stack for kernels given as texts, and the matrix it stands for along the places of `order`."""
    n = len(order)
    x, y, goal = mixed_points(n, 1), mixed_points(n, 2), kernel_of(target)
    centring = centre(goal, y, Engine(1), hollow=True)[0]
    M = np.array(naive.u_centred(goal(y).tolist())) * (1.0 if factor is None else kernel_of(factor)(x))
    rows, kernel = CentredProduct.of(goal, y, centring, None if factor is None else (kernel_of(factor), x))
    return KernelStack([(rows, (kernel,))], [order], circle, hollow=True), M[order][:, order]


TEXTS = (None, "gaussian(1.5)", "delta", "gaussian(1.5)*hamming(2)", "polynomial(2)")


@settings(max_examples=30, deadline=None)
@given(
    circle=st.integers(2, 40),
    fixed=st.integers(0, 6),
    texts=st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS[1:])),
    count=st.integers(1, 25),
    tile=st.integers(1, 200),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_line_of_a_centred_product(*, circle, fixed, texts, count, tile, seed):
    """Odd and even circles, with and without fixed rows, in blocks and tiles of any size."""
    n = max(circle + fixed, 4)
    circle = n - fixed
    places = np.arange(circle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "TILE_ENTRIES", tile)
        stack, M = centred_product(*texts, np.random.default_rng(seed).permutation(n), circle)
        size = np.abs(M).max()
        for kind, lines in (("lags", circle // 2 + 1), ("fixed", fixed)):
            for start in range(0, lines, count):
                block = Block(kind, start, min(count, lines - start))
                out = np.full((block.count, circle), np.nan)
                assert list(stack.lines(0, block, out)) == [0]
                for row, found in enumerate(out, start=start):
                    expected = M[circle + row, places] if kind == "fixed" else M[places, (places + row) % circle]
                    assert_close(found, expected, scale=size)
    found = stack.fixed_entries(0)
    assert found.shape == (1, fixed, fixed)
    assert_close(found[0], M[circle:, circle:], scale=size)


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


def lines_of(M, block, circle):
    """Return the entries of a block by its definition."""
    rows = range(block.start, block.start + block.count)
    if block.kind == "fixed":
        return np.array([[M[circle + row, i] for i in range(circle)] for row in rows])
    return np.array([[M[i, (i + lag) % circle] for i in range(circle)] for lag in rows])


@pytest.mark.parametrize("circle", [2, 3, 4, 5, 8, 9, 30, 31])
@pytest.mark.parametrize("fixed", [0, 1, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_row_sums_from_lines(circle, fixed, count):
    """Any cut of the lines into blocks; lag 0 and, on even circles, lag n/2 hold their entries once."""
    n = circle + fixed
    M = np.random.default_rng((circle, fixed)).normal(size=(n, n))
    M += M.T
    rows = np.zeros(n)
    for kind, lines in (("lags", circle // 2 + 1), ("fixed", fixed)):
        for start in range(0, lines, count):
            block = Block(kind, start, min(count, lines - start))
            add_row_sums(rows, lines_of(M, block, circle), block, circle)
    # The fixed rows among themselves are on no line.
    rows[circle:] += M[circle:, circle:].sum(axis=1)
    assert_close(rows, M.sum(axis=1))


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
