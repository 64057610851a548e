"""Kernels on a device against the same kernels in numpy, for every library that is installed."""

import numpy as np
import pytest
from catalogue_kernels import CATEGORIES, GROUPED, NUMERIC, UNBOUND, kernel_of, mixed_points
from devices import LIBRARIES, device_of

from kerntest.errors import UndecidedError
from kerntest.inference.lags import LagPairs
from kerntest.kernels.algebra import Constant
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.binding import bind
from kerntest.kernels.on_device import DenseOnDevice, DeviceRows, LagsOnDevice, evaluated, refuse_host_only
from kerntest.kernels.stationary import Gaussian, Periodic
from kerntest.kernels.text import parse_kernel

BESSEL = "matern(1.5, 1.2)"
TEXTS = [text for text in [*UNBOUND, *GROUPED] if text != BESSEL]
N, SIZE = 61, 37


def both_layouts(kernel, points, device):
    """Return the values of lags 5, 6, ... and of all pairs of two sets of rows, from numpy and from the device."""
    count, start = 11, 5
    rows = DeviceRows(points, np.arange(N), device)
    lags = LagPairs(points.take(slice(0, SIZE)), points.take(slice(start, start + SIZE + count - 1)), count)
    yield kernel.evaluate(lags), evaluated(kernel, LagsOnDevice(rows, start, count, SIZE))
    above, across = np.arange(7), np.arange(3, N)
    dense = DensePairs(points.take(slice(0, 7)), points.take(slice(3, N)))
    here, there = (DeviceRows(points, places, device) for places in (above, across))
    yield kernel.evaluate(dense), evaluated(kernel, DenseOnDevice(here, there))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", TEXTS)
def test_every_kernel_is_what_numpy_computes(text, library):
    points, kernel = mixed_points(N, 3), kernel_of(text)
    for expected, found in both_layouts(kernel, points, device_of(library, "float64")):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(device_of(library).fetch(found), expected, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", TEXTS)
def test_float32_keeps_its_digits(text, library):
    points, kernel = mixed_points(N, 3), kernel_of(text)
    device = device_of(library)
    for expected, found in both_layouts(kernel, points, device):
        assert found.dtype == device.xp.float32
        # Cubes of inner products up to 10 lose a digit or two; kernels of distances none.
        scale = np.abs(expected).max()
        np.testing.assert_allclose(device.fetch(found), expected, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_matern_without_closed_form_is_refused(library):
    del library
    nested = bind(parse_kernel(f"price, weight: 2 * ({BESSEL} + linear); *: hamming(2)"), NUMERIC, CATEGORIES).kernel
    for kernel in (kernel_of(BESSEL), nested):
        with pytest.raises(UndecidedError, match=r"matern\(1.5, nu=1.2\).*Bessel") as caught:
            refuse_host_only([kernel])
        assert caught.value.exit_code == 4
        assert "nu=0.5, 1.5 or 2.5" in caught.value.hint
    refuse_host_only([kernel_of(text) for text in TEXTS])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "kernel",
    [Constant(3.0), Constant(2.0) ** 2 * Gaussian(1.5), Gaussian(1.5) + Constant(2.0) ** 3, Periodic() * 2],
    ids=str,
)
def test_constants_and_rows_without_numbers(kernel, library):
    points = Points(np.zeros((N, 0)), mixed_points(N, 1).codes)
    for expected, found in both_layouts(kernel, points, device_of(library, "float64")):
        np.testing.assert_allclose(device_of(library).fetch(found), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", ["delta", "hamming(2)"])
def test_equality_is_of_the_values_not_of_rounded_ones(text, library):
    # Told apart by float64 alone.
    points = Points.of(np.repeat([1.0, 1.0 + 1e-12, 7.0], [20, 20, N - 40]))
    for expected, found in both_layouts(parse_kernel(text), points, device_of(library)):
        assert len(np.unique(expected)) == 2
        np.testing.assert_allclose(device_of(library).fetch(found), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", ["gaussian(1.5)", "laplacian2(2)", "laplacian(0.7)", "periodic(2, 0.8)"])
@pytest.mark.parametrize("columns", [1, 3, 5])
def test_rows_far_from_the_origin_and_from_the_crowd_keep_their_digits(text, columns, library):
    rng = np.random.default_rng(0)
    device = device_of(library)
    for offset, outlier in ((1e6, 0.0), (0.0, 1e7)):
        numeric = rng.normal(size=(N, columns)) + offset
        numeric[0] += outlier
        points = Points.of(numeric)
        assert points.expandable == (outlier == 0.0)
        for expected, found in both_layouts(parse_kernel(text), points, device):
            # float64 itself keeps nine digits of a distance between rows at 1e6, eight at 1e7.
            np.testing.assert_allclose(device.fetch(found), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("count", "length"), [(1, 1), (1, 9), (4, 9), (5, 9), (9, 9)])
def test_windows_and_sums_of_shifted_lines(count, length, library):
    device = device_of(library)
    values = np.arange(length, dtype=np.float64) ** 2
    window = np.array([values[k : k + length - count + 1] for k in range(count)])
    found = device.window(device.send(values), count)
    np.testing.assert_array_equal(device.fetch(found), window)
    summed = np.zeros(length)
    for k, line in enumerate(window):
        summed[k : k + len(line)] += line
    np.testing.assert_array_equal(device.fetch(device.shifted_sum(found)), summed)
