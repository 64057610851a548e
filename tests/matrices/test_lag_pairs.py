"""A block of lags holds the same quantities as a dense block, entry by entry."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest.kernels.base import Columns, DensePairs, Points
from kerntest.matrices import passes
from kerntest.matrices.passes import Block, LagPairs, LaidOut, plan_blocks, window

SHAPES = [(p, q) for p in (0, 1, 2, 3, 10) for q in (0, 1, 3)]


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
    "mismatches": lambda pairs: pairs.mismatches(),
    "all_mismatches": lambda pairs: pairs.all_mismatches(),
    "at_x": lambda pairs: pairs.at_x(norms(pairs.x)),
    "at_y": lambda pairs: pairs.at_y(norms(pairs.y)),
}


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(("p", "q"), SHAPES)
@pytest.mark.parametrize("block", [(1, 0, 40), (7, 3, 41), (40, 0, 25), (64, 5, 6)])
def test_every_quantity(quantity, p, q, block):
    count, start, stop = block
    points = points_of(110, p, q)
    pairs, places = lag_pairs(points, count, start, stop)
    compute = QUANTITIES[quantity]
    dense = np.broadcast_to(compute(DensePairs(points, points)), (110, 110))
    found = np.broadcast_to(compute(pairs), pairs.shape)
    assert pairs.shape == (count, stop - start)
    assert_close(found, dense[places], scale=1.0 + np.abs(dense).max())
    assert found.dtype == dense.dtype


@pytest.mark.parametrize(("p", "q"), SHAPES)
def test_differences_one_column_at_a_time(p, q):
    points = points_of(60, p, q)
    pairs, places = lag_pairs(points, 9, 2, 44)
    found, dense = list(pairs.differences()), list(DensePairs(points, points).differences())
    assert len(found) == len(dense) == p
    for lagged, whole in zip(found, dense, strict=True):
        np.testing.assert_array_equal(lagged, whole[places])
        lagged[:] = 7.0
    for lagged, whole in zip(pairs.differences(), dense, strict=True):
        np.testing.assert_array_equal(lagged, whole[places])


@pytest.mark.parametrize(
    "columns", [Columns((0, 2), ()), Columns((), (1,)), Columns((9, 1, 4), (2, 0)), Columns((), ())]
)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_restricted_to_some_columns(columns, quantity):
    points = points_of(60, 10, 3)
    pairs, places = lag_pairs(points, 9, 2, 44)
    compute = QUANTITIES[quantity]
    dense = np.broadcast_to(compute(DensePairs(points, points).restrict(columns)), (60, 60))
    found = np.broadcast_to(compute(pairs.restrict(columns)), pairs.shape)
    assert_close(found, dense[places], scale=1.0 + np.abs(dense).max())
    assert pairs.restrict(columns) is pairs.restrict(Columns(columns.numeric, columns.categories))


@pytest.mark.parametrize("p", [2, 3])
def test_distances_far_from_the_origin_keep_their_digits(p):
    near = points_of(80, p, 0)
    far = Points(near.numeric + 1e7, near.codes)
    pairs, places = lag_pairs(far, 20, 0, 60)
    np.testing.assert_allclose(
        pairs.squared_distance(), DensePairs(near, near).squared_distance()[places], rtol=1e-6, atol=1e-6
    )


def test_quantities_are_computed_once():
    pairs, _ = lag_pairs(points_of(60, 3, 1), 9, 2, 44)
    for quantity in ("inner_product", "squared_distance", "manhattan", "mismatches"):
        assert QUANTITIES[quantity](pairs) is QUANTITIES[quantity](pairs)


@pytest.mark.parametrize("tile", [1, 50, 2**16])
@pytest.mark.parametrize(("n", "circle"), [(17, 17), (30, 24), (300, 300), (301, 270)])
def test_tiles_of_all_blocks_hold_the_whole_matrix(n, circle, tile, monkeypatch):
    """Every unordered pair with a row on the circle: once, but the halved lines of the middle lag twice."""
    monkeypatch.setattr(passes, "TILE_ENTRIES", tile)
    identity = Points(np.arange(n, dtype=float)[:, None], np.empty((n, 0), dtype=np.int64))
    rows = LaidOut(identity, circle)
    seen = np.zeros((n, n))
    for block in plan_blocks(circle, n - circle):
        weights = np.ones(block.count)
        weights[block.halved(circle)] = 0.5
        filled = np.zeros(circle, dtype=int)
        for pairs, columns in rows.tiles(block):
            left = np.broadcast_to(pairs.at_x(pairs.x.numeric[:, 0]), pairs.shape).astype(int)
            right = np.broadcast_to(pairs.at_y(pairs.y.numeric[:, 0]), pairs.shape).astype(int)
            np.add.at(seen, (left, right), np.broadcast_to(weights[:, None], pairs.shape))
            np.add.at(seen, (right, left), np.broadcast_to(weights[:, None], pairs.shape))
            filled[columns] += 1
        assert (filled == 1).all()
    expected = np.ones((n, n))
    expected[circle:, circle:] = 0
    np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize(
    ("block", "circle", "halved"),
    [
        (Block("lags", 0, 4), 7, [0]),
        (Block("lags", 0, 5), 8, [0, 4]),
        (Block("lags", 0, 4), 8, [0]),
        (Block("lags", 4, 1), 8, [0]),
        (Block("lags", 1, 3), 7, []),
        (Block("fixed", 0, 5), 8, []),
    ],
)
def test_lines_that_count_once(block, circle, halved):
    assert block.halved(circle) == halved


def test_window():
    values = np.arange(10.0)[::2]
    np.testing.assert_array_equal(window(values, 3), [[0, 2, 4], [2, 4, 6], [4, 6, 8]])
    with pytest.raises(ValueError, match="read-only"):
        window(values, 3)[0, 0] = 1.0


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
    assert found.max() == 1.0
    assert (found[0] == 1.0).all()
    assert found[3, 18] == 1.0


def test_exponentials_between_different_rows():
    """What is moved to the middle of some rows does not fit others."""
    first, second = points_of(12, 2, 0), points_of(14, 2, 0)
    second.numeric[:] += 3.0
    found = LagPairs(first, second, 3).exponential_manhattan(2.0)
    places = np.arange(3)[:, None] + np.arange(12)
    expected = np.exp(-np.abs(first.numeric - second.numeric[places]).sum(axis=2) / 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
