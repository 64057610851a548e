"""Sums over all relabellings, sweeps and whole tests on a device against the same in float64."""

import numpy as np
import pytest
import two_samples
import two_variables
from catalogue_kernels import kernel_of, mixed_points
from devices import LIBRARIES, engine_on
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, STATISTIC, assert_close

from kerntest import compute_on, hsic_test, mmd_test
from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError
from kerntest.inference import device_lines, device_shifts
from kerntest.inference.device_shifts import device_shift_sums
from kerntest.inference.device_sweep import DeviceSweep, device_correlations
from kerntest.inference.low_rank import centred_factor, low_rank_sums
from kerntest.inference.relabelling import centred_sums
from kerntest.inference.shifts import shift_sums
from kerntest.inference.stacks import KernelStack
from kerntest.inference.sweep import Centring, sweep
from kerntest.inference.weighted import CentredProduct
from kerntest.kernels.base import Points
from kerntest.kernels.factors import kernel_factor

ESTIMATORS = ("unbiased", "biased")
KERNELS = ("gaussian(1.5)", "laplacian(0.7)", "polynomial(3)", "delta*laplacian2(2)", "linear + 100")
HERE = LocalEngine(1)


def labelled(n, n_x, circle, estimator, *, kernels, points=None):
    """Return a stack of kernels, one of a variable with two values, and the order of both."""
    places = [np.random.default_rng(n).permutation(n)]
    points = mixed_points(n, 3) if points is None else points
    label = Points.of(np.repeat([1.0, 0.0], [n_x, n - n_x]) - n_x / n)
    options = {"hollow": estimator == "unbiased", "centred_by_rows": True}
    first, second = [(points, [kernel_of(text) for text in kernels])], [(label, [kernel_of("linear")])]
    return KernelStack(first, places, circle, **options), KernelStack(second, places, circle, **options), places


def paired(n, circle, estimator, orders=1, kernels=KERNELS):
    """Return two stacks of kernels, each with two sources, and the orders of the second."""
    rng = np.random.default_rng(n)
    places = [rng.permutation(n) for _ in range(orders)]
    kernels = [kernel_of(text) for text in kernels]
    options = {"hollow": estimator == "unbiased", "centred_by_rows": True}
    first = [(mixed_points(n, 3), kernels[:2]), (mixed_points(n, 4), kernels[2:])]
    second = [(mixed_points(n, 5), kernels[3:]), (Points.of(rng.normal(size=n)), kernels[:1])]
    return KernelStack(first, places[:1], circle, **options), KernelStack(second, places, circle, **options), places


def both(first, second, *, n, circle, orders, engine):
    sizes = {"n": n, "circle": circle, "orders": orders}
    return shift_sums(first, second, **sizes, engine=HERE), shift_sums(first, second, **sizes, engine=engine)


def assert_same(found, expected, rtol):
    for name in ("values", "rows_first", "rows_second", "squares_first", "squares_second"):
        wanted, got = getattr(expected, name), getattr(found, name)
        if name.startswith(("rows", "squares")) and not wanted.any():
            continue
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max(), err_msg=name)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n", "circle"), [(4, 4), (5, 2), (13, 9)])
def test_in_float64_a_device_gives_what_numpy_gives(n, circle, estimator, library):
    engine = engine_on(library, "float64")
    first, second, _ = paired(n, circle, estimator, orders=3)
    expected, found = both(first, second, n=n, circle=circle, orders=3, engine=engine)
    assert_same(found, expected, rtol=STATISTIC)


@settings(max_examples=8, deadline=None)
@given(
    n=st.integers(4, 60),
    left_over=st.integers(0, 9),
    estimator=st.sampled_from(ESTIMATORS),
    lines=st.integers(1, 40),
    orders=st.integers(1, 3),
)
def test_any_sizes_blocks_and_orders(n, left_over, estimator, lines, orders):
    circle = max(n - left_over, 2)
    engine = engine_on("strict", "float64")
    first, second, _ = paired(n, circle, estimator, orders=orders, kernels=KERNELS[:4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_lines, "LINES", lines)
        # One order at a time.
        patch.setattr(device_lines, "HELD_BYTES", 1)
        expected, found = both(first, second, n=n, circle=circle, orders=orders, engine=engine)
    assert_same(found, expected, rtol=STATISTIC)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_four_matrices_on_both_sides_share_one_product_for_each_frequency(estimator, library):
    first, second, _ = paired(30, 30, estimator, orders=2)
    assert first.members >= 4
    assert second.members * 2 >= 4
    expected, found = both(first, second, n=30, circle=30, orders=2, engine=engine_on(library, "float64"))
    assert_same(found, expected, rtol=STATISTIC)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("n", "circle", "share"), [(300, 300, 20), (403, 360, 2)])
def test_float32_moves_no_statistic_further_than_it_says(n, circle, share, library):
    engine = engine_on(library)
    kernels = ("gaussian(1.5)", "laplacian(0.7)", "polynomial(3)", "linear")
    first, second, places = labelled(n, n // share, circle, "unbiased", kernels=kernels)
    expected, found = both(first, second, n=n, circle=circle, orders=1, engine=engine)
    exact, near = (centred_sums(sums, places, circle, hollow=True) for sums in (expected, found))
    assert (np.abs(near - exact).max(axis=(2, 3)) <= found.doubt).all()
    # A few millionths of a standard deviation.
    assert (found.doubt <= 2e-5 * exact.std(axis=(2, 3))).all()
    assert 0 < engine.arrays.error < 1e-5


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_float32_keeps_the_centred_sums_of_two_kernels(estimator, library):
    n, circle = 403, 400
    first, second, places = paired(
        n, circle, estimator, kernels=("gaussian(1.5)", "laplacian(0.7)", "linear", "linear")
    )
    engine = engine_on(library)
    expected, found = both(first, second, n=n, circle=circle, orders=1, engine=engine)
    hollow = estimator == "unbiased"
    exact, near = (centred_sums(sums, places, circle, hollow=hollow) for sums in (expected, found))
    assert (np.abs(near - exact).max(axis=(2, 3)) <= found.doubt).all()
    assert (found.doubt <= 2e-5 * exact.std(axis=(2, 3))).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_float32_cannot_hold_is_computed_in_float64_on_the_device(library):
    n = 400
    points = Points.of(np.random.default_rng(0).normal(size=(n, 2)) + 1000.0)
    first, second, places = labelled(n, 150, n, "unbiased", kernels=("gaussian(1.5)", "linear"), points=points)
    engine = engine_on(library)
    expected, found = both(first, second, n=n, circle=n, orders=1, engine=engine)
    exact, near = (centred_sums(sums, places, n, hollow=True) for sums in (expected, found))
    error = np.abs(near - exact).max(axis=(1, 2, 3))
    # Entries of the second are 2e6 and what centring leaves of them is 1: float32 holds them to 0.1.
    assert (error <= 1e-7 * exact.std(axis=(1, 2, 3))).all()
    assert (found.doubt <= 1e-5 * exact.std(axis=(2, 3))).all()
    assert 0 < engine.arrays.error < 1e-7


def two_columns(x, y, text):
    """Return two stacks of one kernel, each on a column of its own in the same order."""
    places, kernels = [np.random.default_rng(len(x)).permutation(len(x))], [kernel_of(text)]
    return (*(KernelStack([(Points.of(z), kernels)], places, len(x), centred_by_rows=True) for z in (x, y)), places)


@pytest.mark.parametrize("library", LIBRARIES)
def test_sums_that_float32_rounds_too_far_are_computed_in_float64_without_near_ties(library):
    # Of a kernel that is nearly constant; no other shift comes near to the sum of a column with itself.
    n = 200
    x = np.random.default_rng(0).normal(size=n)
    first, second, places = two_columns(x, x, "gaussian(350)")
    expected, found = both(first, second, n=n, circle=n, orders=1, engine=engine_on(library))
    exact, near = (centred_sums(sums, places, n, hollow=False)[0, 0, 0] for sums in (expected, found))
    assert exact[0] > exact[1:].max() + exact.std()
    assert np.abs(near - exact).max() <= 1e-3 * exact.std()
    assert found.doubt[0, 0] <= 1e-12 * exact.std()


@pytest.mark.parametrize("library", LIBRARIES)
def test_near_ties_of_shifts_are_decided_in_float64(library):
    # Columns of two values: many shifts give the same sum, which float32 holds well otherwise.
    n, rng = 200, np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, n)).astype(float)
    first, second, places = two_columns(x, y, "linear")
    expected, found = both(first, second, n=n, circle=n, orders=1, engine=engine_on(library))
    exact, near = (centred_sums(sums, places, n, hollow=False)[0, 0, 0] for sums in (expected, found))
    assert found.doubt[0, 0] <= 1e-12 * exact.std()
    ties = np.abs(near - near[0]) <= found.doubt[0, 0] + 1e-12 * exact.std()
    np.testing.assert_array_equal(ties, np.abs(exact - exact[0]) <= 1e-9 * exact.std())
    assert 1 < np.count_nonzero(ties) < n


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("kernel", "unit"), [("gaussian(1e5)", 1.0), ("laplacian2(1e-30)", 1e-30), ("polynomial", 1e8), ("linear", 1e25)]
)
def test_kernels_at_the_edge_of_float32_have_the_same_p_value(kernel, unit, library, monkeypatch):
    if library == "strict" and unit > 1:
        pytest.skip("it is numpy, which raises where devices give infinity")
    rng = np.random.default_rng(0)
    x, y = unit * rng.normal(size=(20, 2)), unit * rng.normal(size=(25, 2))
    expected = mmd_test(x, y, kernel=kernel, scale="none")
    with device_engine(library, monkeypatch):
        found = mmd_test(x, y, kernel=kernel, scale="none")
    assert found.p_value == expected.p_value < 1.0


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kernel", ["auto", "gaussian", "matern(nu=2.5)", "student-t * hamming"])
def test_mmd_has_the_same_p_value(kernel, library, monkeypatch):
    x, y = two_samples.frames(90, 115)
    expected = mmd_test(x, y, kernel=kernel, threads=1)
    with device_engine(library, monkeypatch):
        found = mmd_test(x, y, kernel=kernel)
    assert found.p_value == expected.p_value
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kernel", ["auto", "laplacian"])
def test_hsic_has_the_same_p_value(kernel, library, monkeypatch):
    data = two_variables.frame(150)
    sides = data[["weight", "city"]], data[["depth", "price"]]
    expected = hsic_test(*sides, kernel_x=kernel, kernel_y=kernel, threads=1)
    with device_engine(library, monkeypatch):
        found = hsic_test(*sides, kernel_x=kernel, kernel_y=kernel)
    assert found.p_value == expected.p_value
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)


def test_a_thousand_rows_have_the_same_p_values(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 3)), rng.normal(size=(511, 3)) * 1.03
    z = rng.normal(size=(1011, 3))
    gaussian = {"kernel_x": "gaussian", "kernel_y": "gaussian"}
    both_samples = np.concatenate([x, y])
    expected = mmd_test(x, y, kernel="gaussian"), hsic_test(both_samples, z, **gaussian)
    with device_engine(LIBRARIES[-1], monkeypatch) as engine:
        found = mmd_test(x, y, kernel="gaussian"), hsic_test(both_samples, z, **gaussian)
        assert 0 < engine.arrays.error < 1e-5
    for got, wanted in zip(found, expected, strict=True):
        # One of 1,000 relabellings may lie closer to the observed one than rounding.
        assert got.p_value == pytest.approx(wanted.p_value, rel=0, abs=1 / 1000)
        assert got.statistic == pytest.approx(wanted.statistic, rel=1e-4, abs=1e-9)


def test_equal_relabellings_tie_in_float32(monkeypatch):
    # Rows of three different values: thousands of relabellings give the same split, and the p-value counts them all.
    x, y = np.repeat([0.0, 1.0, 2.5], [30, 20, 10]), np.repeat([0.0, 1.0, 2.5], [18, 25, 20])
    expected = mmd_test(x, y, kernel="laplacian", permutations=3000)
    with device_engine("strict", monkeypatch):
        assert mmd_test(x, y, kernel="laplacian", permutations=3000).p_value == expected.p_value


def device_engine(library, monkeypatch):
    """Return the engine gpu on a device that every machine has."""
    engine = engine_on(library)
    monkeypatch.setattr("kerntest.engines.gpu.GpuEngine", lambda *_, **__: engine)
    return compute_on("gpu")


def test_the_device_is_what_computes(monkeypatch):
    calls = []
    usual = device_shifts.DeviceLines.sums

    def spied(self, *arguments):
        calls.append(self.n)
        return usual(self, *arguments)

    monkeypatch.setattr(device_shifts.DeviceLines, "sums", spied)
    with device_engine("strict", monkeypatch):
        hsic_test(np.arange(45.0), np.arange(45.0) ** 2, bandwidth="median")
    assert calls == [45]


def test_progress_covers_all_blocks_of_all_passes(monkeypatch):
    monkeypatch.setattr(device_lines, "LINES", 7)
    monkeypatch.setattr(device_lines, "HELD_BYTES", 1)
    first, second, _ = paired(
        40, 36, "biased", orders=3, kernels=("gaussian(1.5)", "laplacian(0.7)", "linear", "linear")
    )
    calls = []
    device_shift_sums(
        first,
        second,
        n=40,
        circle=36,
        orders=3,
        device=engine_on("strict").arrays,
        progress=lambda done, total: calls.append((done, total)),
    )
    # 18 lags and 4 fixed rows.
    assert calls == [(done, 12) for done in range(1, 13)]


def test_a_matrix_that_devices_cannot_lay_out_is_computed_here():
    n = 30
    target = (mixed_points(n, 1), kernel_of("gaussian(1.5)"))
    weights = CentredProduct(None, target, Centring(np.full(n, 0.1), 0.1, hollow=True), np.arange(n), n)
    stack = KernelStack([(mixed_points(n, 2), [kernel_of("linear")])], [np.arange(n)], n)
    expected, found = both(weights, stack, n=n, circle=n, orders=1, engine=engine_on("strict"))
    assert_close(found.values, expected.values, share=SAME_MACHINE)
    assert found.doubt is None
    with pytest.raises(TypeError, match="CentredProduct"):
        device_shift_sums(weights, stack, n=n, circle=n, orders=1, device=engine_on("strict").arrays)


def test_too_little_memory_for_one_line():
    first, second, _ = paired(600, 600, "biased")
    engine = engine_on("strict", memory=10_000)
    with pytest.raises(UndecidedError, match=r"one line of 600 rows") as caught:
        shift_sums(first, second, n=600, circle=600, orders=1, engine=engine)
    assert caught.value.code == "undecided.memory"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("hollow", [True, False])
def test_sweeps(hollow, library, monkeypatch):
    monkeypatch.setattr("kerntest.inference.device_sweep.STRIP_ENTRIES", 1000)
    n, rng = 80, np.random.default_rng(0)
    points, kernel = mixed_points(n, 1), kernel_of("gaussian(1.5)*hamming(2)")
    vectors, weights = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    centrings = [None, Centring(rng.random(n), 0.3, hollow=hollow)]
    for centring in centrings:
        expected = sweep(kernel, points, vectors, HERE, centring=centring, square_vectors=weights, cubes=True)
        for precision, rtol in (("float64", STATISTIC), ("float32", 1e-6)):
            device = engine_on(library, precision).arrays
            strips = DeviceSweep(
                kernel, points, device, vectors=vectors, weights=weights, centring=centring, cubes=True
            )
            product, total_square, squares, cubes = strips.run(None)
            np.testing.assert_allclose(product, expected.product, rtol=0, atol=10 * rtol)
            np.testing.assert_allclose(squares, expected.squares, rtol=0, atol=10 * rtol)
            np.testing.assert_allclose([total_square, cubes], [expected.total_square, expected.cubes], rtol=10 * rtol)


@pytest.mark.parametrize("library", LIBRARIES)
def test_near_ties_are_decided_in_float64(library, monkeypatch):
    # One row of 1e6 makes the spread; all else differs by far less than float32 holds of it.
    values = np.append(np.random.default_rng(0).normal(size=60), 1e6)
    x, y = values[::2], values[1::2]
    expected = mmd_test(x, y, kernel="linear", scale="none")
    with device_engine(library, monkeypatch):
        assert mmd_test(x, y, kernel="linear", scale="none").p_value == expected.p_value


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("text", "doubled"), [("gaussian(2)", False), ("gaussian(1e5)", True), ("1e4 + linear", True)])
def test_sweeps_of_kernels_too_flat_for_float32_are_made_in_float64(text, doubled, library):
    n, kernel = 120, kernel_of(text)
    points = Points.of(np.random.default_rng(0).normal(size=(n, 2)))
    rows = kernel(points).mean(axis=1)
    options = {"vectors": np.ones((n, 1)), "centring": Centring(rows, float(rows.mean()), hollow=False), "cubes": True}
    expected = sweep(kernel, points, options["vectors"], HERE, centring=options["centring"], cubes=True)
    device = engine_on(library).arrays
    strips = DeviceSweep(kernel, points, device, weights=np.zeros((n, 0)), **options)
    assert strips.device.precision == ("float64" if doubled else "float32")
    assert (device.error > 0) is not doubled
    np.testing.assert_allclose(strips.run(None)[1], expected.total_square, rtol=1e-5, atol=0)


def test_large_sweeps_run_on_the_device_and_small_ones_here(monkeypatch):
    calls = []
    usual = DeviceSweep.run
    monkeypatch.setattr(DeviceSweep, "run", lambda self, progress: calls.append(1) or usual(self, progress))
    kernel = kernel_of("gaussian(1.5)")
    for n, times in ((500, 0), (2900, 1)):
        points = Points.of(np.random.default_rng(0).normal(size=n))
        found = sweep(kernel, points, np.ones((n, 1)), engine_on("strict"))
        expected = sweep(kernel, points, np.ones((n, 1)), HERE)
        np.testing.assert_allclose(found.product, expected.product, rtol=1e-6, atol=0)
        assert len(calls) == times


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("hollow", [True, False])
def test_correlations_of_factors(hollow, library, monkeypatch):
    monkeypatch.setattr("kerntest.inference.device_sweep.CORRELATED_ENTRIES", 300)
    n, circle, rng = 130, 120, np.random.default_rng(0)
    factors = [
        centred_factor(
            kernel_factor(kernel_of("gaussian(1.5)"), Points.of(rng.normal(size=n)), tolerance=1e-12, most=60)
        )
        for _ in range(2)
    ]
    moved = [factors[1].take(rng.permutation(n)) for _ in range(2)]
    expected = low_rank_sums(factors[0], moved, circle, hollow=False, engine=HERE)
    found = device_correlations(factors[0], moved, circle, engine_on(library).arrays, None)
    assert_close(found, expected)
    # Of few rows they are not worth sending: on either engine the same.
    on_device = low_rank_sums(factors[0], moved, circle, hollow=hollow, engine=engine_on(library))
    assert_close(on_device, low_rank_sums(factors[0], moved, circle, hollow=hollow, engine=HERE), share=SAME_MACHINE)
