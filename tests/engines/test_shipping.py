"""Work that travels to other processes, and comes back from there."""

import pickle

import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.base import enough_for, in_pieces
from kerntest.engines.local import LocalEngine
from kerntest.errors import DataError, MissingExtraError, UsageError
from kerntest.inference.shifts import shift_sums
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.stationary import Gaussian, Laplacian
from kerntest.matrices.lags import KernelStack, LaidOut, plan_blocks

pytest.importorskip("cloudpickle")

from kerntest.engines.shipping import LARGE, Shipped, name_of, pack  # the import needs the package


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("kind", [DataError, UsageError, MissingExtraError])
def test_errors_keep_all_they_say(kind):
    error = kind(
        "no such column: 'x'", hint="did you mean 'y'?", code="data.column", where={"file": "a.csv", "line": 3}
    )
    found = again(error)
    assert type(found) is kind
    assert (str(found), found.message, found.hint) == (str(error), error.message, error.hint)
    assert (found.code, found.where, found.exit_code) == (error.code, error.where, error.exit_code)


def test_large_arrays_travel_apart_and_equal_ones_once():
    large = np.arange(LARGE // 8, dtype=np.float64)
    small = np.arange(5.0)
    body, arrays = pack({"a": large, "b": [large, large.copy()], "c": small})
    assert len(body) < 2000
    assert len(arrays) == 1
    found = Shipped(body, list(arrays)).unpacked(list(arrays.values()))
    np.testing.assert_array_equal(found["a"], large)
    np.testing.assert_array_equal(found["b"][1], large)
    np.testing.assert_array_equal(found["c"], small)


def test_arrays_of_other_contents_or_layout_have_other_names():
    square = np.arange(16.0).reshape(4, 4)
    others = [square + 1, square.astype(np.int64), square.reshape(2, 8), np.asfortranarray(square)]
    assert len({name_of(one) for one in [square, *others]}) == 5
    assert name_of(square.copy()) == name_of(square)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_the_layout_of_large_arrays_stays(layout):
    whole = np.arange(2.0 * LARGE).reshape(-1, 4)
    array = {"C": whole, "F": np.asfortranarray(whole), "strided": whole[::2]}[layout]
    _, arrays = pack(array)
    (found,) = arrays.values()
    np.testing.assert_array_equal(found, array)
    assert found.flags.f_contiguous == (layout == "F")


def test_work_is_unpacked_once():
    shipped = Shipped(*pack(lambda item: item + 1))
    assert shipped.unpacked([]) is shipped.unpacked([])
    assert shipped.unpacked([])(3) == 4
    assert again(shipped).unpacked([])(3) == 4


def test_points_travel_without_what_is_derived_from_them():
    points = Points.of(np.random.default_rng(0).normal(size=(500, 4)))
    bare = len(pickle.dumps(points))
    assert points.expandable
    points.derive("twice", lambda numeric: 2 * numeric)
    assert len(pickle.dumps(points)) == bare
    assert len(pickle.dumps(points.take(slice(0, 50)))) < bare / 5


def test_distances_of_a_slice_are_computed_as_those_of_the_whole():
    """One row far off makes expansion too coarse for the crowd, also where that row is not in the slice."""
    numeric = np.random.default_rng(0).normal(size=(200, 2))
    numeric[-1] = 1e9
    points = Points.of(numeric)
    crowd = points.take(slice(0, 100))
    assert not points.expandable
    assert not again(crowd).expandable
    assert Points.of(numeric[:100]).expandable
    kernel = Gaussian(1.0)
    assert_close(kernel(again(crowd)), kernel.evaluate(DensePairs(crowd, crowd)), share=SAME_MACHINE)


def test_rows_laid_out_again_give_the_same_tiles():
    rng = np.random.default_rng(0)
    points = Points(rng.normal(size=(50, 2)), rng.integers(0, 3, size=(50, 1)))
    laid = LaidOut(points, 45)
    found = again(laid)
    for block in plan_blocks(45, 5):
        for (pairs, columns), (others, other_columns) in zip(laid.tiles(block), found.tiles(block), strict=True):
            assert columns == other_columns
            assert_close(pairs.squared_distance(), others.squared_distance(), share=SAME_MACHINE)
            # Counts of columns: whole numbers have no rounding.
            np.testing.assert_array_equal(pairs.mismatches(), others.mismatches())


def test_a_stack_sends_its_rows_once_for_all_orders():
    rng = np.random.default_rng(0)
    points = Points.of(rng.normal(size=(300, 20)))
    orders = [rng.permutation(300) for _ in range(4)]
    stack = KernelStack([(points, (Gaussian(1.0), Laplacian(2.0)))], orders, 300, hollow=True, centred_by_rows=True)
    assert len(pickle.dumps(stack)) < 1.1 * (points.numeric.nbytes + sum(order.nbytes for order in orders)) + 1000

    def summed(one):
        return shift_sums(one, one, n=300, circle=300, orders=4, engine=LocalEngine(1))

    found, expected = summed(again(stack)), summed(stack)
    assert_close(found.values, expected.values, share=SAME_MACHINE)
    assert_close(found.rows_second, expected.rows_second, share=SAME_MACHINE)


@pytest.mark.parametrize(("count", "most"), [(0, 4), (1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (7800, 256), (3, 1)])
def test_pieces_are_runs_that_cover_the_items(count, most):
    pieces = in_pieces(list(range(count)), most)
    assert [item for piece in pieces for item in piece] == list(range(count))
    assert len(pieces) <= most
    assert len({len(piece) for piece in pieces[:-1]}) <= 1


def test_little_work_stays_here():
    class Far(LocalEngine):
        here = LocalEngine(1)

    far = Far(1)
    assert enough_for(far, 1e9) is far
    assert enough_for(far, 1000) is Far.here


@pytest.mark.parametrize("most", [1, 2, 3])
def test_sums_over_blocks_in_few_pieces_are_those_in_many(monkeypatch, most):
    """Of a million rows a piece holds many blocks: here of few rows, by a smaller number of pieces."""
    rng = np.random.default_rng(0)
    points = Points.of(rng.normal(size=(600, 2)))
    orders = [rng.permutation(600)]
    stack = KernelStack([(points, (Gaussian(1.0),))], orders, 595, centred_by_rows=True)

    def summed():
        return shift_sums(stack, stack, n=600, circle=595, orders=1, engine=LocalEngine(2))

    many = summed()
    monkeypatch.setattr("kerntest.inference.shifts.in_pieces", lambda items: in_pieces(items, most))
    few = summed()
    assert_close(few.values, many.values, share=SAME_MACHINE)
    assert_close(few.rows_first, many.rows_first, share=SAME_MACHINE)
    assert_close(few.squares_second, many.squares_second, share=SAME_MACHINE)
