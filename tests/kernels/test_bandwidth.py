"""Bandwidths from the pooled rows."""

import naive
import numpy as np
import pytest

from kerntest import parse_kernel
from kerntest.errors import UndecidedError
from kerntest.kernels import bandwidth
from kerntest.kernels.bandwidth import BandwidthChooser, Distances, pair_distances
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Gaussian
from kerntest.kernels.text import bind

METRICS = {"euclidean": naive.euclidean, "manhattan": naive.manhattan, "mismatches": naive.mismatches}


def points_of(n, seed=0, p=3, q=2):
    rng = np.random.default_rng(seed)
    return Points(np.round(rng.normal(size=(n, p)), 1), rng.integers(0, 3, size=(n, q)))


def naive_distances(points, metric):
    rows = points.numeric.tolist()
    if metric == "mismatches":
        rows = [a + b for a, b in zip(rows, points.codes.tolist(), strict=True)]
    return np.array([METRICS[metric](x, y) for i, x in enumerate(rows) for y in rows[i + 1 :]])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [2, 7, 255, 257])
def test_all_pairs_of_few_rows(metric, n):
    points = points_of(n)
    found = np.sort(pair_distances(points, metric, seed=0))
    np.testing.assert_allclose(found, np.sort(naive_distances(points, metric)), rtol=1e-9, atol=2e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_median_of_the_pairs_that_differ(metric):
    points = points_of(30)
    points.numeric[:] += 0.01 * np.random.default_rng(1).normal(size=(30, 3))
    points = points.take(np.arange(31) % 30)
    distances = naive_distances(points, metric)
    expected = np.median(distances[distances > 0])
    chooser = BandwidthChooser(points, seed=0)
    np.testing.assert_allclose(chooser.median(metric, None), expected, rtol=1e-12)
    found = chooser.distances(metric, None)
    np.testing.assert_allclose(found.low, np.quantile(distances[distances > 0], 0.05), rtol=1e-12)


def test_rows_beyond_the_range_of_numbers_have_no_bandwidth_and_no_other_warning():
    points = Points.of(np.random.default_rng(0).normal(size=(30, 2)) * 1e307)
    with pytest.raises(UndecidedError, match="beyond the range of numbers"):
        BandwidthChooser(points, 0).median("euclidean", None)


@pytest.mark.parametrize("metric", METRICS)
def test_beyond_2000_rows_a_sample_of_pairs_is_close(metric, monkeypatch):
    points = Points(np.random.default_rng(2).normal(size=(2100, 3)), points_of(2100).codes)
    sampled = pair_distances(points, metric, seed=0)
    assert len(sampled) == bandwidth.SAMPLED_PAIRS
    # Of two different rows each, and others with another seed.
    assert (sampled > 0).all()
    assert (sampled != pair_distances(points, metric, seed=1)).any()
    by_sample = BandwidthChooser(points, 0).distances(metric, None)
    monkeypatch.setattr(bandwidth, "EXACT_ROWS", 2100)
    exact = BandwidthChooser(points, 0).distances(metric, None)
    # Of 100,000 pairs, whose quantiles have a relative standard error below half a per cent.
    np.testing.assert_allclose([by_sample.low, by_sample.median], [exact.low, exact.median], rtol=0.025)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [4, 2100])
def test_equal_rows_have_no_bandwidth(metric, n):
    points = Points(np.full((n, 2), 1.5), np.zeros((n, 1), dtype=np.int64))
    with pytest.raises(UndecidedError, match="no bandwidth can be chosen: all pairs of rows") as caught:
        BandwidthChooser(points, 0).median(metric, None)
    assert caught.value.exit_code == 4
    assert caught.value.code == "undecided.no_distance"
    assert "bandwidth=" in caught.value.hint


@pytest.mark.parametrize("metric", METRICS)
def test_a_few_rare_rows_give_the_bandwidth_of_rows_that_are_else_equal(metric):
    numeric, codes = np.zeros((50_000, 1)), np.zeros((50_000, 1), dtype=np.int64)
    numeric[[7, 23_000]], codes[[7, 23_000]] = 3.0, 1
    points = Points(numeric, codes)
    assert not bandwidth._distances(
        bandwidth.RowPairs(points.take(slice(100, 200)), points.take(slice(200, 300))), metric
    ).any()
    assert BandwidthChooser(points, 0).median(metric, None) == (2.0 if metric == "mismatches" else 3.0)


def finest(text, points, numeric=("a", "b", "c"), categories=("d", "e")):
    kernel = bind(parse_kernel(text), numeric, categories).kernel
    return BandwidthChooser(points, 0).log_finest(kernel)


def test_the_finest_bandwidth_is_half_the_5_percent_quantile():
    points = Points.of(np.random.default_rng(4).lognormal(sigma=1.5, size=(200, 1)))
    found = BandwidthChooser(points, 0).distances("euclidean", None)
    np.testing.assert_allclose(found.median * 2.0 ** finest("gaussian", points, ("a",), ()), found.low / 2, rtol=1e-12)
    assert finest("laplacian", Points.of(np.repeat([0.0, 1.0], 20)), ("a",), ()) == -1


def test_it_follows_the_numeric_columns_where_there_are_any():
    points = points_of(100)
    numbers_only = points.select(Columns((0, 1, 2), ()))
    assert finest("gaussian", points) == finest("gaussian", numbers_only, categories=())
    many = Points(np.empty((100, 0)), np.random.default_rng(0).integers(0, 2, size=(100, 12)))
    assert finest("hamming", many, (), tuple("abcdefghijkl")) < -1


@pytest.mark.parametrize("off", [-1e-15, 0.0, 1e-15])
def test_a_power_of_two_is_one_whichever_way_rounding_went(off):
    chooser = BandwidthChooser(points_of(10), 0)
    chooser._known["euclidean", None] = Distances(0.5 * (1 + off), 1.0)
    assert chooser.log_finest(Gaussian()) == -2


def test_the_median_of_one_column_of_many_rows_is_that_of_some_of_them_whatever_their_order():
    values = np.random.default_rng(6).normal(size=(3000, 1))
    found, other = (BandwidthChooser(Points.of(one), 0).median("euclidean", None) for one in (values, values[::-1]))
    assert found == other
    np.testing.assert_allclose(found, bandwidth.median_distance(values[:, 0]), rtol=0.05)


@pytest.mark.parametrize("few", [1, bandwidth.FEW_LEFT])
def test_the_median_of_one_column_may_lie_in_a_gap_between_distances(few, monkeypatch):
    monkeypatch.setattr(bandwidth, "FEW_LEFT", few)
    # Three distances of at most 0.2, and three of at least 9.8.
    assert bandwidth.median_distance(np.array([0.1, 0.0, 10.0, 0.2])) == pytest.approx(5.0, rel=1e-12, abs=0)
