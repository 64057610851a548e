"""Sums of many matrices on both sides over all relabellings, and their row sums, against loops over every pair."""

import itertools

import naive
import numpy as np
import pytest
from catalogue_kernels import kernel_of, mixed_points
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.engine import Engine
from kerntest.inference.relabelling import shifts
from kerntest.inference.relabelling.shifts import shift_sums
from kerntest.kernels.base import Points
from kerntest.matrices import passes
from kerntest.matrices.passes import Block, KernelStack, add_row_sums, plan_blocks

NEVER, ALWAYS = 10**9, 1
TEXTS = ("gaussian(1.5)", "linear", "hamming(2)", "laplacian(0.7)", "polynomial(2)", "delta")


def orders_of(n, count, seed):
    rng = np.random.default_rng((seed, n))
    return [rng.permutation(n) for _ in range(count)]


def hollowed(K, hollow):
    K = np.array(K, dtype=float)
    if hollow:
        np.fill_diagonal(K, 0.0)
    return K


def matrices(sources, hollow=False):
    return [hollowed(kernel(points), hollow) for points, kernels in sources for kernel in kernels]


def sources_of(counts, n, seed):
    """Return one source for each count, with so many kernels, each on rows of its own."""
    texts = itertools.cycle(TEXTS)
    return [
        (mixed_points(n, seed + place), [kernel_of(next(texts)) for _ in range(count)])
        for place, count in enumerate(counts)
    ]


def summed(first, second, orders, circle, *, hollow=False, threads=1, progress=None):
    return shift_sums(
        KernelStack(first, orders[:1], circle, hollow=hollow, centred_by_rows=True),
        KernelStack(second, orders, circle, hollow=hollow, centred_by_rows=True),
        engine=Engine(threads),
        progress=progress,
    )


def expected_sums(A, B, orders, circle, shifts_looked_at):
    """Return <A_f, B_g> for every order and the named shifts, shape (F, G, C, T), by products of whole matrices."""
    left = np.stack(A).reshape(len(A), -1)
    right = np.stack(B)
    expected = np.empty((len(A), len(B), len(orders), len(shifts_looked_at)))
    for order, places in enumerate(orders):
        for number, shift in enumerate(shifts_looked_at):
            p = np.array(naive.partners(orders[0].tolist(), places.tolist(), circle, shift))
            expected[:, :, order, number] = left @ right[:, p][:, :, p].reshape(len(B), -1).T
    return expected


def assert_sums(found, sides, orders, circle, shifts_looked_at):
    """Compare sums and row sums of two lists of matrices with those that were found."""
    A, B = sides
    n = len(orders[0])
    assert found.values.shape == (len(A), len(B), len(orders), circle)
    expected = expected_sums(A, B, orders, circle, shifts_looked_at)
    size = np.abs(A).max(axis=(1, 2))[:, None] * np.abs(B).max(axis=(1, 2)) * n**2
    error = np.abs(found.values[..., shifts_looked_at] - expected)
    assert (error <= 1e-13 * size[:, :, None, None]).all()
    for rows, side in ((found.rows[0], A), (found.rows[1], B)):
        for member, K in zip(rows, side, strict=True):
            # Along the places of the first order.
            assert_close(member, K.sum(axis=1)[orders[0]], scale=n * np.abs(K).max())


counts_of_sources = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(
    counts=st.tuples(counts_of_sources, counts_of_sources),
    sizes=st.tuples(st.integers(2, 24), st.integers(0, 6), st.integers(1, 4)),
    hollow=st.booleans(),
    limits=st.tuples(st.sampled_from([NEVER, ALWAYS, 4]), st.integers(1, 10**5), st.integers(1, 300)),
    seed=st.integers(0, 2**32 - 100),
)
def test_any_numbers_of_matrices_orders_and_fixed_rows(*, counts, sizes, hollow, limits, seed):
    circle, fixed, orders = sizes
    n = circle + fixed
    first, second = (sources_of(count, n, seed + 10 * side) for side, count in enumerate(counts))
    drawn = orders_of(n, orders, seed)
    with pytest.MonkeyPatch.context() as patch:
        # Stacked or not, few of the orders at a time, and small tiles.
        patch.setattr(shifts, "MANY", limits[0])
        patch.setattr(shifts, "HELD_ENTRIES", limits[1])
        patch.setattr(passes, "TILE_ENTRIES", limits[2])
        found = summed(first, second, drawn, circle, hollow=hollow)
    assert_sums(found, (matrices(first, hollow), matrices(second, hollow)), drawn, circle, range(circle))


@pytest.mark.parametrize("many", [NEVER, ALWAYS], ids=["pair by pair", "stacked"])
@pytest.mark.parametrize(("n", "circle"), [(260, 260), (261, 261), (300, 269), (330, 190)])
def test_several_blocks_of_lags_and_of_fixed_rows(monkeypatch, n, circle, many):
    monkeypatch.setattr(shifts, "MANY", many)
    first, second = sources_of([2, 2], n, 1), sources_of([1, 3], n, 7)
    orders = orders_of(n, 2, 1)
    found = summed(first, second, orders, circle, hollow=True)
    assert len(plan_blocks(circle, n - circle)) > 1
    sides = matrices(first, hollow=True), matrices(second, hollow=True)
    assert_sums(found, sides, orders, circle, [0, 1, 128, circle - 1])


@pytest.mark.parametrize(
    ("first", "second", "orders", "stacked"),
    [([4], [4], 1, True), ([4], [2], 2, True), ([3], [4], 9, False), ([4], [3], 1, False), ([1], [1], 50, False)],
)
def test_matrices_are_stacked_where_there_are_many_on_both_sides(monkeypatch, first, second, orders, stacked):
    used, original = [], shifts._Lines
    monkeypatch.setattr(shifts, "_Lines", lambda *args, **how: used.append(how["stacked"]) or original(*args, **how))
    summed(sources_of(first, 12, 1), sources_of(second, 12, 2), orders_of(12, orders, 1), 12)
    assert used == [stacked]


@pytest.mark.parametrize("many", [NEVER, ALWAYS], ids=["pair by pair", "stacked"])
def test_the_same_on_any_number_of_threads(monkeypatch, many):
    monkeypatch.setattr(shifts, "MANY", many)
    first, second = sources_of([2, 2], 500, 1), sources_of([4], 500, 8)
    orders = orders_of(500, 2, 1)
    one, several = (summed(first, second, orders, 480, threads=count) for count in (1, 3))
    for found, expected in zip((several.values, *several.rows), (one.values, *one.rows), strict=True):
        assert_close(found, expected, share=SAME_MACHINE)


def test_row_sums_are_left_out_where_nobody_wants_them():
    points = Points.of(np.random.default_rng(0).normal(size=(20, 2)))
    stacks = [
        KernelStack([(points, [kernel_of("linear")])], [np.arange(20)], 20, centred_by_rows=wanted)
        for wanted in (True, False)
    ]
    found = shift_sums(*stacks, engine=Engine(1))
    assert_close(found.rows[0][0], matrices([(points, [kernel_of("linear")])])[0].sum(axis=1))
    assert not found.rows[1].any()


def test_progress_of_a_stack_covers_all_passes(monkeypatch):
    monkeypatch.setattr(shifts, "MANY", ALWAYS)
    monkeypatch.setattr(shifts, "HELD_ENTRIES", 2 * 200 * 101)
    calls = []
    summed(
        sources_of([1], 200, 1),
        sources_of([1], 200, 2),
        orders_of(200, 5, 1),
        200,
        progress=lambda done, total: calls.append((done, total)),
    )
    total = calls[-1][1]
    assert total % len(plan_blocks(200, 0)) == 0
    assert calls == [(done, total) for done in range(1, total + 1)]


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
