"""Contract of all relabellings: each sum is that of a double loop over rows relabelled that way, the observed first."""

import itertools
import math
import tracemalloc

import naive
import numpy as np
import pytest
from catalogue_kernels import GROUPED, UNBOUND, kernel_of, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close

from kerntest import hsic_test, mmd_test, parse_kernel
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError
from kerntest.inference import exact
from kerntest.inference.family import Family
from kerntest.inference.nulls.permutation import ROUNDING_UNITS
from kerntest.inference.relabelling import designs, permuted_blocks, permuted_pairs, shifts
from kerntest.inference.relabelling.designs import MANY_SPLITS, BlockedRows, splits_of
from kerntest.inference.relabelling.permuted_blocks import (
    TwoSamples,
    random_orders,
)
from kerntest.inference.relabelling.permuted_pairs import TwoVariables
from kerntest.inference.relabelling.shifts import circle_length, orders_needed
from kerntest.inference.sides import Options, Sample
from kerntest.inference.sizes.location import PART
from kerntest.inference.sizes.margins import SAMPLED
from kerntest.inference.statistic import LabelMatrix
from kerntest.inference.verdict import relabelling_warning, verdict_of
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.text import bind
from kerntest.matrices import passes
from kerntest.matrices.factor import EXPECTED_ROWS, LEFT_OUT, low_rank, low_rank_factor

ENGINE = Engine(2)
ESTIMATORS = ("unbiased", "biased")
SEED = 3


def sample_of(points, labels):
    """Return rows with their labels, 1 for X, as an exact test takes them."""
    return Sample(
        points=points,
        centre=np.zeros(points.numeric.shape[1]),
        spread=np.ones(points.numeric.shape[1]),
        numeric_names=(),
        category_names=(),
        labels=np.asarray(labels, dtype=np.uint8),
        origin=np.arange(len(labels)),
    )


def options_of(estimator, resampling, permutations=40):
    return Options(estimator, "permutation", permutations, 0.05, "none", SEED, resampling)


def centred(K, estimator):
    return np.array(naive.centred[estimator](np.asarray(K).tolist()))


# Two variables


def two_variables(x, y, members, estimator, resampling="shifts", *, at_least=40):
    """Return what is relabelled, and the partners p(i) of all rows i in every relabelling, by their definition."""
    n = len(x)
    test = TwoVariables(options_of(estimator, resampling), ENGINE, None, (x, y))
    found = test.relabelled(Family(members), at_least)
    rng = np.random.default_rng((SEED, 0))
    if resampling == "random":
        drawn = [np.arange(n), *(rng.permutation(n) for _ in range(at_least - 1))]
        return found, [*map(np.array, itertools.permutations(range(n)))] if test.complete else drawn
    circle = test.circle
    if test.complete:
        places = [[0, *rest] for rest in itertools.permutations(range(1, n))]
    else:
        places = [rng.permutation(n).tolist() for _ in range(found.orders)]
        assert found.orders == orders_needed(at_least, circle)
    every = itertools.product(places, range(circle))
    return found, [np.array(naive.partners(places[0], place, circle, shift)) for place, shift in every]


def expected_sums(K, L, partners, estimator):
    A, B = centred(K, estimator), centred(L, estimator)
    return [np.vdot(A, B[p][:, p]) for p in partners]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("resampling", ["shifts", "random"])
@pytest.mark.parametrize("text", [*UNBOUND, *GROUPED])
def test_every_kernel_under_every_relabelling(text, resampling, estimator, monkeypatch):
    """Of 23 rows one keeps its partner: the circle has 22, and 40 relabellings take two orders."""
    monkeypatch.setattr(shifts, "SMALL_CIRCLE", 8)
    n = 23
    kernels = kernel_of(text), kernel_of("laplacian(0.7)")
    K, L = naive_matrix(text, n, 1), naive_matrix("laplacian(0.7)", n, 2)
    found, partners = two_variables(mixed_points(n, 1), mixed_points(n, 2), (kernels,), estimator, resampling)
    assert_close(found.sums[0], expected_sums(K, L, partners, estimator), scale=n**2 * np.abs(K).max())
    statistic = {"unbiased": naive.u_centred, "biased": naive.doubly_centred}[estimator]
    assert_close(found.sums[0, 0], naive.matrix_inner(statistic(K), statistic(L)), scale=n**2 * np.abs(K).max())


def blocks_of(lines):
    """Return what cuts the lines of a matrix into blocks of so many, in place of `plan_blocks`."""

    def cut(circle, fixed, _=1):
        counts = ("lags", circle // 2 + 1), ("fixed", fixed)
        return [
            passes.Block(kind, start, min(lines, count - start))
            for kind, count in counts
            for start in range(0, count, lines)
        ]

    return cut


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(4, 40),
    fixed=st.integers(0, 6),
    lines=st.sampled_from([1, 2, 3, 7, 100]),
    limits=st.tuples(st.sampled_from([1, 4, 10**9]), st.integers(1, 10**5), st.integers(1, 300)),
    estimator=st.sampled_from(ESTIMATORS),
    resampling=st.sampled_from(["shifts", "random"]),
    counts=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    at_least=st.integers(1, 90),
)
def test_families_of_any_size(*, n, fixed, lines, limits, estimator, resampling, counts, at_least):
    """With rows that keep their partner, in any blocks and tiles, pair by pair or stacked, few orders at a time."""
    texts = ["gaussian(1.5)", "linear", "delta", "polynomial(2)", "gaussian(1.5)*hamming(2)"]
    first, second = ([kernel_of(text) for text in some] for some in (texts[: counts[0]], texts[-counts[1] :]))
    # Not all pairs of them.
    members = tuple(pair for place, pair in enumerate(itertools.product(first, second)) if place % 3 != 1)
    x, y = mixed_points(n, 1), mixed_points(n, 2)
    with pytest.MonkeyPatch.context() as patch:
        for place in (shifts, permuted_pairs):
            patch.setattr(place, "circle_length", lambda n: max(n - fixed, 2))
        for place, name, limit in zip(
            (shifts, shifts, passes), ("MANY", "HELD_ENTRIES", "TILE_ENTRIES"), limits, strict=True
        ):
            patch.setattr(place, name, limit)
        patch.setattr(shifts, "plan_blocks", blocks_of(lines))
        patch.setattr(permuted_pairs, "TOGETHER", 5)
        found, partners = two_variables(x, y, members, estimator, resampling, at_least=at_least)
        for (kernel_x, kernel_y), sums in zip(members, found.sums, strict=True):
            K, L = kernel_x(x), kernel_y(y)
            scale = n**2 * np.abs(K).max() * np.abs(L).max()
            assert_close(sums, expected_sums(K, L, partners, estimator), scale=scale)


@pytest.mark.parametrize(
    ("first", "second", "orders", "stacked"),
    [(4, 4, 1, True), (4, 2, 2, True), (3, 4, 9, False), (4, 3, 1, False), (1, 1, 50, False)],
)
def test_matrices_are_stacked_where_there_are_many_on_both_sides(monkeypatch, first, second, orders, stacked):
    used, original = [], shifts._Lines
    monkeypatch.setattr(shifts, "_Lines", lambda *args, **how: used.append(how["stacked"]) or original(*args, **how))
    texts = ("gaussian(1.5)", "linear", "hamming(2)", "laplacian(0.7)")
    members = itertools.product(*([kernel_of(text) for text in texts[:count]] for count in (first, second)))
    two_variables(mixed_points(12, 1), mixed_points(12, 2), tuple(members), "biased", at_least=12 * orders)
    assert used == [stacked]


def test_shifts_hold_few_lines_of_kernels_of_many_columns():
    """Kernels of one side share the values of each of 60 columns, of which 128 lines would take 141 MB."""
    x = np.random.default_rng(0).normal(size=(1200, 60))
    tracemalloc.start()
    try:
        hsic_test(x, x[:, :2] ** 2, kernel_x="additive", bandwidth=[1.0, 2.0], threads=1, permutations=1000)
        assert tracemalloc.get_traced_memory()[1] < 1.3 * 8 * passes.HELD_ENTRIES
    finally:
        tracemalloc.stop()


def test_progress_of_shifts_covers_all_passes(monkeypatch):
    monkeypatch.setattr(shifts, "HELD_ENTRIES", 2 * 200 * 101)
    calls = []
    options = {"kernel_x": "laplacian(1)", "kernel_y": "laplacian(1)", "permutations": 1000}
    x, y = np.random.default_rng(0).normal(size=(2, 200, 2))
    hsic_test(x, y, progress=lambda done, total: calls.append((done, total)), **options)
    total = calls[-1][1]
    assert total == 3
    assert calls == [(done, total) for done in range(1, total + 1)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n", [120, 131])
@pytest.mark.parametrize("kind", ["one pair", "a family", "of two columns"])
def test_correlations_of_factors(n, kind, estimator, monkeypatch):
    """A single pair of low rank; Gaussians of a family beside a kernel without a factor; additive kernels."""
    monkeypatch.setattr(permuted_pairs, "FEW_ROWS", 10)
    monkeypatch.setattr(shifts, "SMALL_CIRCLE", 8)
    monkeypatch.setattr(shifts, "CORRELATED_ENTRIES", 1200 if estimator == "biased" else shifts.CORRELATED_ENTRIES)
    calls, original = [], permuted_pairs.low_rank_sums
    monkeypatch.setattr(
        permuted_pairs, "low_rank_sums", lambda *args, **named: calls.append(1) or original(*args, **named)
    )
    rng = np.random.default_rng(0)
    columns = 2 if kind == "of two columns" else 1
    x, y = Points.of(rng.normal(size=(n, columns))), Points.of(rng.normal(size=(n, 1)))
    narrow = [kernel_of("gaussian(1.5)")] if columns == 1 else []
    members = [(kernel_of("gaussian(8)"), kernel_of("gaussian(4)"))]
    if kind == "a family":
        members += [(kernel_of("gaussian(4)"), kernel_of("gaussian(4)")), (kernel_of("laplacian(1)"), *narrow)]
    elif columns == 2:
        members = [
            (bind(parse_kernel(f"additive({h}, 8)"), ("a", "b"), ()).kernel, kernel_of("gaussian(4)")) for h in (4, 6)
        ]
    found, partners = two_variables(x, y, tuple(members), estimator)
    for (kernel_x, kernel_y), sums, tolerance in zip(members, found.sums, found.tolerances, strict=True):
        expected = expected_sums(kernel_x(x), kernel_y(y), partners, estimator)
        assert_close(sums, expected, scale=n**2, share=1e-11)
        # What the factors leave out may move the sums by so much.
        a, b = (low_rank_factor(kernel, side, LEFT_OUT) for kernel, side in ((kernel_x, x), (kernel_y, y)))
        if kind != "one pair" and a is not None and b is not None:
            left_out = a.residual * np.trace(centred(kernel_y(y), "biased"))
            left_out += b.residual * np.trace(centred(kernel_x(x), "biased"))
            assert tolerance >= left_out * (1 - 1e-6)
        assert tolerance < 1e-6 * np.ptp(expected)
    assert calls


def test_tied_relabellings_count_as_ties(monkeypatch):
    """Of two binary columns most relabellings tie with others; rounding of a factor must not part them."""
    x, y = np.random.default_rng(2).integers(0, 2, (2, 300)).astype(float)
    options = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)", "permutations": 3000}
    fast = hsic_test(x, y, **options)
    monkeypatch.setattr(permuted_pairs, "low_rank_factor", lambda *_: None)
    assert fast.p_value == hsic_test(x, y, **options).p_value


@pytest.mark.parametrize("tolerance", [1e-15, 1e-9, 1e-3])
def test_correlations_that_are_left_out_add_up_to_no_more_than_the_tolerance(tolerance):
    x, y = (
        low_rank(parse_kernel(text), Points.of(np.random.default_rng(seed).normal(size=(300, 1))))
        for seed, text in enumerate(("gaussian(1.5)", "gaussian(2)"))
    )
    orders = [np.random.default_rng(k).permutation(300) for k in range(2)]
    every = shifts.low_rank_sums(x, y, orders, 299, hollow=False, engine=ENGINE, tolerance=0.0)
    found = shifts.low_rank_sums(x, y, orders, 299, hollow=False, engine=ENGINE, tolerance=tolerance)
    scale = x.lengths.sum() * y.lengths.sum()
    assert (np.abs(every - found) <= (tolerance + 1e-15) * scale).all()
    needed = shifts.correlations_needed(x, y, tolerance)
    assert needed.sum() < x.rank * y.rank or tolerance < 1e-12
    bounds = np.outer(x.lengths, np.sort(y.lengths)[::-1])
    kept = np.arange(y.rank) < needed[:, None]
    assert bounds[~kept].sum() <= tolerance * scale
    assert bounds[~kept].max(initial=0.0) <= bounds[kept].min()


def test_random_permutations_have_a_limit_of_memory(monkeypatch):
    monkeypatch.setattr(exact, "DENSE_ENTRIES", 2 * 19**2)
    x, y = np.random.default_rng(0).normal(size=(2, 20))
    options = {"kernel_x": "linear", "kernel_y": "linear", "resampling": "random", "permutations": 10}
    hsic_test(x[:19], y[:19], **options)
    with pytest.raises(
        UndecidedError, match=r"^random permutations of 2 kernels .* 20 rows are more than 19$"
    ) as caught:
        hsic_test(x, y, **options)
    assert caught.value.code == "undecided.memory"
    assert "resampling='shifts'" in caught.value.hint
    with pytest.raises(UndecidedError, match=r"of 3 kernels .* 19 rows are more than 15"):
        hsic_test(x[:19], y[:19], **options | {"kernel_x": "gaussian", "bandwidth": (1, 2)})


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("text_y", ["gaussian(1.5)", "delta"])
@pytest.mark.parametrize("text_x", ["gaussian(1.5)", "laplacian(0.01)", "linear", "polynomial(3)", "exponential(0.2)"])
def test_rounding_stays_below_the_tolerance_for_ties(text_x, text_y, offset):
    n = 240
    points = mixed_points(n, 7)
    if text_x == "exponential(0.2)" and offset:
        # Beyond the range of numbers there.
        offset = 10.0
    x, y = Points(points.numeric + offset, points.codes), Points(points.numeric[::-1, :1].round(), points.codes[::-1])
    kernels = kernel_of(text_x), kernel_of(text_y)
    for estimator in ESTIMATORS:
        found, partners = two_variables(x, y, (kernels,), estimator)
        # A selection of the sums in extended precision.
        A, B = (
            extended_centring(kernel(side).astype(np.longdouble), estimator)
            for kernel, side in zip(kernels, (x, y), strict=True)
        )
        exact = [float((A * B[p][:, p]).sum()) for p in partners[::13]]
        # Two sums that are equal may part by as much as the errors spread.
        assert np.ptp(found.sums[0, ::13] - exact) < 0.75 * found.tolerances[0]


def extended_centring(M, estimator):
    n = len(M)
    A = M.copy()
    if estimator == "biased":
        rows = A.mean(axis=1)
        return A - rows[:, None] - rows + rows.mean()
    np.fill_diagonal(A, 0)
    rows = A.sum(axis=1)
    A += rows.sum() / ((n - 1) * (n - 2)) - (rows[:, None] + rows) / (n - 2)
    np.fill_diagonal(A, 0)
    return A


# Two samples

SIZES = [(2, 2), (3, 5), (40, 33), (5, 400), (100, 41), (260, 170)]
TEXTS = ["gaussian(1.5)", "laplacian(0.7)", "polynomial(3)", next(iter(GROUPED))]


def labels_of(n_x, n_y):
    return np.random.default_rng(n_x).permutation(np.repeat([1, 0], [n_x, n_y])).astype(np.uint8)


def two_samples(points, labels, kernels, estimator, resampling="blocks", *, at_least=40):
    """Return what is relabelled, and the labels of all rows in every relabelling, by their definition."""
    test = TwoSamples(options_of(estimator, resampling), ENGINE, None, sample_of(points, labels))
    found = test.relabelled(Family(tuple((kernel,) for kernel in kernels)), at_least)
    if resampling == "random":
        order, labellings = random_orders(labels, at_least, SEED)
        places = order
        rows = labellings
    else:
        blocks = BlockedRows.of(labels, SEED)
        moved = blocks.relabellings(at_least, SEED)
        fixed = np.broadcast_to(blocks.in_x[blocks.free :], (len(moved), len(blocks.in_x) - blocks.free))
        places = blocks.order
        rows = np.repeat(np.hstack([moved, fixed]), np.diff(blocks.starts), axis=1)
    every = np.empty((len(rows), len(labels)), dtype=int)
    every[:, places] = rows
    return found, every


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("resampling", ["blocks", "random"])
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_two_samples_under_every_relabelling(n_x, n_y, resampling, estimator, monkeypatch):
    monkeypatch.setattr(permuted_blocks, "TOGETHER_ROWS", 7)
    monkeypatch.setattr(permuted_blocks, "TOGETHER_BLOCKS", 9)
    points, labels = mixed_points(n_x + n_y, 1), labels_of(n_x, n_y)
    kernels = [kernel_of(text) for text in TEXTS]
    found, every = two_samples(points, labels, kernels, estimator, resampling)
    np.testing.assert_array_equal(every[0], labels)
    assert (every.sum(axis=1) == n_x).all()
    factor = LabelMatrix(n_x, n_y, estimator).factor
    for kernel, sums in zip(kernels, found.sums, strict=True):
        K = kernel(points)
        for g in {0, 1, len(every) // 2, len(every) - 1}:
            expected = naive.mmd2[estimator](K.tolist(), every[g].tolist())
            assert_close(factor * sums[g], expected, scale=np.abs(K).max())


@pytest.mark.parametrize("parts", ["large blocks", "factors"])
def test_two_samples_in_any_parts(parts, monkeypatch):
    """Blocks larger than a tile; and matrices of low rank, beside one that has no factor."""
    if parts == "large blocks":
        for name, value in (("TILE", 7), ("BLOCKS", 6), ("FEWEST", 2)):
            monkeypatch.setattr(permuted_blocks if name == "TILE" else designs, name, value)
    else:
        monkeypatch.setattr(permuted_blocks, "FEW_ROWS", 10)
    rng = np.random.default_rng(0)
    points, labels = Points.of(rng.normal(size=120)), labels_of(63, 57)
    kernels = [kernel_of(text) for text in ("gaussian(2)", "gaussian(1)", "laplacian(1)", "linear + 2*gaussian(1)")]
    found, every = two_samples(points, labels, kernels, "unbiased")
    for kernel, sums in zip(kernels, found.sums, strict=True):
        expected = [naive.mmd2_unbiased(kernel(points), labelled) for labelled in every[:5]]
        assert_close(LabelMatrix(63, 57, "unbiased").factor * sums[:5], expected, scale=1.0, share=1e-11)
    if parts == "factors":
        # What a factor leaves out of a matrix counts in the tolerance for ties.
        left_out = low_rank_factor(kernels[0], points, LEFT_OUT).residual
        norm = math.sqrt(LabelMatrix(63, 57, "unbiased").squared_norm)
        assert found.tolerances[0] >= left_out * norm > 5 * found.tolerances[2]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("gaussian(1.5)", 1e6),
        ("laplacian(0.01)", 0.0),
        ("laplacian(0.7)", 1e6),
        ("linear", 0.0),
        ("linear", 1e6),
        ("polynomial(3)", 1e6),
        ("exponential(0.2)", 0.0),
    ],
)
def test_rounding_of_two_samples_stays_far_below_the_tolerance(text, offset, estimator):
    points, labels, kernel = mixed_points(360, 7), labels_of(150, 210), kernel_of(text)
    points = Points(points.numeric + offset, points.codes)
    found, every = two_samples(points, labels, [kernel], estimator, at_least=10)
    # The same in extended precision.
    K = kernel(points).astype(np.longdouble)
    exact = [
        float((K * extended_centring(np.outer(labelled, labelled).astype(np.longdouble), estimator)).sum())
        for labelled in every
    ]
    unit, rounding = found.tolerances[0] / ROUNDING_UNITS, np.abs(found.sums[0] - exact)
    # The largest of many is an extreme: two sums that are compared may differ by twice that, and half the tolerance is left.
    assert np.sqrt(np.mean(rounding**2)) < unit
    assert 4 * rounding.max() < found.tolerances[0]


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


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.parametrize("judge", ["together", "smallest"])
def test_over_all_relabellings_the_p_values_are_uniform(judge):
    """The rank of every split of eight rows among all splits: exactness, the hard way."""
    rows = np.random.default_rng(6).normal(size=(8, 2))
    options = {"kernel": "gaussian + 0.1*laplacian", "bandwidth": (0.3, 1, 3), "judge": judge, "scale": "none"}
    p = []
    for chosen in itertools.combinations(range(8), 3):
        y = rows[[row for row in range(8) if row not in chosen]]
        p.append(mmd_test(rows[list(chosen)], y, **options).p_value)
    splits = math.comb(8, 3)
    ranks = sorted(np.rint(np.array(p) * splits).astype(int).tolist())
    # Splits of which no kernel sees more than on average are all alike to the family, and the last.
    told = splits if judge == "smallest" else ranks.index(splits)
    assert told >= splits // 2 - 1
    assert ranks == [*range(1, told + 1), *[splits] * (splits - told)]


# Verdicts


@pytest.mark.parametrize("kernel", ["laplacian2(1)", "matern(1, 0.5)", "gaussian(1)", "laplacian(1)", "student-t(1)"])
@pytest.mark.parametrize("resampling", ["shifts", "random"])
def test_equal_rows_tie(resampling, kernel):
    """Relabellings that pair equal rows differently are one relabelling, in any number of columns.

    Here are two different rows of three columns on each side, so that sums differ by far more than 1e-6 of their
    range or not at all.
    """
    for seed in range(6):
        x, y = np.random.default_rng(seed).integers(0, 2, (2, 12)).astype(float)
        sides = Points.of(np.column_stack([x, x, 1 - x])), Points.of(np.column_stack([y, 2 * y, y]))
        test = TwoVariables(options_of("unbiased", resampling, 300), ENGINE, None, sides)
        found = verdict_of(test, Family(((parse_kernel(kernel), parse_kernel(kernel)),)))
        values = found.relabelled
        assert found.p_value == np.mean(values >= values[0] - 1e-6 * np.ptp(values)), seed


def test_no_dense_block_holds_more_than_a_tile(monkeypatch):
    shapes = []
    original = DensePairs.__init__

    def noted(self, x, y):
        shapes.append(len(x) * len(y))
        original(self, x, y)

    monkeypatch.setattr(DensePairs, "__init__", noted)
    x, y = np.random.default_rng(0).normal(size=(2, 2500, 2))
    hsic_test(x, y, kernel_x="gaussian(1)", kernel_y="gaussian(1)")
    assert shapes
    # So many rows of any number tell whether there is a factor; tiles are smaller.
    assert max(shapes) <= EXPECTED_ROWS**2
    # The size of a difference, or the shift that would have been found, is told by so many rows of any number.
    mmd_test(x, y, kernel="gaussian(1)")
    mmd_test(x, y + 1.0, kernel="gaussian(1)")
    assert max(shapes) <= max(SAMPLED, 2 * PART[1]) ** 2


@pytest.mark.parametrize(
    ("p_value", "relabellings", "alpha", "advised"),
    [
        (0.047, 1000, 0.05, 20_000),
        (0.04, 1000, 0.05, 2000),
        (0.05, 1000, 0.05, 50_000),
        (0.062, 1000, 0.05, 2000),
        (0.03, 1000, 0.05, None),
        (0.07, 1000, 0.05, None),
        (0.047, 20_000, 0.05, None),
        # No other relabelling reaches the observed one.
        (0.01, 100, 0.01, None),
    ],
)
def test_a_p_value_too_near_to_alpha(p_value, relabellings, alpha, advised):
    found = " ".join(relabelling_warning(p_value, relabellings, alpha))
    assert ("within two Monte-Carlo standard errors" in found) == (advised is not None)
    if advised is None:
        assert found == ""
        return
    assert f"permutations={advised} would tell more surely" in found
    if advised < 50_000:
        # What is advised settles it, should the p-value stay.
        assert relabelling_warning(p_value, advised, alpha) == ()


# The circle


@given(n=st.integers(4, 100_000))
def test_circle_length(n):
    length = circle_length(n)
    assert n * 0.98 < length <= n
    if n <= shifts.SMALL_CIRCLE:
        assert length == n
    else:
        rest = length
        for prime in range(2, shifts.LARGEST_FACTOR + 1):
            while rest % prime == 0:
                rest //= prime
        assert rest == 1


@given(relabellings=st.integers(1, 10**6), circle=st.integers(2, 10**5))
def test_orders_needed_is_the_fewest_that_are_enough_or_all_there_are(relabellings, circle):
    orders = orders_needed(relabellings, circle)
    if circle <= 6:
        assert orders == math.factorial(circle - 1)
    elif circle > 9:
        assert (orders - 1) * circle < relabellings <= orders * circle


@pytest.mark.parametrize("codes", ["abc", "aab", "bab", "aaaa", "abcde", "abbacc"])
def test_different_orders_are_those_that_look_different(codes):
    found = list(designs.different_orders(codes))
    assert found[0] == tuple(range(len(codes)))
    assert all(sorted(one) == list(range(len(codes))) for one in found)
    shown = ["".join(codes[place] for place in one) for one in found]
    assert sorted(shown) == sorted({"".join(one) for one in itertools.permutations(codes)})


def test_the_ways_to_choose_rows_are_counted_up_to_a_bound():
    for n in range(1, 45):
        for chosen in range(n + 1):
            assert splits_of(n, chosen) == min(math.comb(n, chosen), MANY_SPLITS)
    # That of half of a million rows alone would have 300,000 digits.
    assert splits_of(10**6, 10**6 // 2) == MANY_SPLITS
    assert splits_of(10**6, 10**6 - 1) == 10**6
