"""Tests of rows of which few are different: by these alone everything is what it is of all rows."""

import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close

from kerntest import hsic_test, mmd_test, parse_kernel
from kerntest.inference.relabelling import permuted_pairs
from kerntest.inference.sizes import location
from kerntest.kernels.base import Points
from kerntest.matrices import factor as factors
from kerntest.matrices.different import equal_rows, few_different
from kerntest.matrices.factor import kernel_factor

KERNELS = ["gaussian(0.1)", "laplacian(1)", "delta", "polynomial(3)", "gaussian(1) + laplacian(2)"]


def counts(n, p=1, seed=0, mean=3.0):
    return np.random.default_rng(seed).poisson(mean, (n, p)).astype(float)


def points_of(n, text="gaussian(1)"):
    X = counts(n, 2)
    codes = X[:, :1].astype(np.int64) if text == "delta" else np.empty((n, 0), dtype=np.int64)
    return Points(X[:, 1:] if text != "delta" else np.empty((n, 0)), codes)


@pytest.mark.parametrize("text", KERNELS)
def test_a_factor_has_no_more_columns_than_there_are_different_rows(text, monkeypatch):
    points, kernel = points_of(400, text), parse_kernel(text)
    different = few_different(points)
    assert different is not None
    factor = kernel_factor(kernel, points)
    assert factor.complete
    assert factor.rank <= len(different[0]) < 20
    K = kernel(points)
    assert_close(np.trace(K - factor.columns @ factor.columns.T), factor.residual, scale=np.trace(K), share=1e-12)
    assert_close(factor.columns @ factor.columns.T, K, share=1e-10)
    # And is that of all rows, whichever of equal ones were the pivots.
    monkeypatch.setattr(factors, "few_different", lambda *_: None)
    every = kernel_factor(kernel, points)
    assert_close(factor.columns @ factor.columns.T, every.columns @ every.columns.T, share=1e-10)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_equal_rows_are_found_where_sums_of_others_are_theirs(share):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (200, 3)).astype(float)
    # All sums overflow, or are those of other rows.
    for given in (rows, 8e307 * rows, rows[:, :0]):
        first, place = equal_rows([given, np.empty((200, 0))], share)
        np.testing.assert_array_equal(given[first][place], given)
        assert len(first) == len(np.unique(given, axis=0))
        assert (np.diff(first) > 0).all()
    assert equal_rows([rng.normal(size=(200, 3))], share) is None


def test_few_rows_are_not_looked_for_among_many_different_ones():
    assert few_different(Points.of(np.random.default_rng(0).normal(size=5000))) is None
    # Copies of each row in a file are as many different rows as rows of one.
    assert few_different(Points.of(np.tile(np.random.default_rng(0).normal(size=2500), 2))) is None
    different, place = few_different(Points.of(np.repeat(np.arange(7.0), 700)))
    np.testing.assert_array_equal(different.numeric[place, 0], np.repeat(np.arange(7.0), 700))


def all_rows(monkeypatch):
    """There is no option for it: the slow way is that of rows that differ."""
    for module in (factors, permuted_pairs, location):
        monkeypatch.setattr(module, "few_different", lambda *_: None)


def test_tests_by_different_rows_are_those_by_all(monkeypatch):
    x, y = counts(2100), counts(2100, seed=1)
    y[:300] += 0.3 * x[:300]
    groups = np.where(x[:, 0] > 4, "many", np.where(x[:, 0] > 2, "some", "few"))

    def found():
        joint = hsic_test(x, y, permutations=2000)
        two = mmd_test(x, x[:900] + (np.arange(900)[:, None] % 9 == 0))
        table = pd.DataFrame({"y": y[:, 0], "group": groups})
        several = mmd_test(table, by="group")
        return joint, two, several

    ours = found()
    all_rows(monkeypatch)
    for one, other in zip(ours, found(), strict=True):
        assert one.p_value == other.p_value
        assert_close(one.statistic, other.statistic, scale=max(abs(other.statistic), 1e-6), condition=10.0)


@pytest.mark.parametrize("kind", ["one column", "two columns", "clusters"])
def test_the_smallest_shift_by_different_rows_is_that_by_all(kind, monkeypatch):
    rng = np.random.default_rng(2)
    p = 2 if kind == "two columns" else 1
    x, y = (counts(700, p, seed, mean=1.5) for seed in (0, 1))
    given = {"column" + str(k): np.concatenate([x, y])[:, k] for k in range(p)}
    given["side"] = np.repeat(["a", "b"], 700)
    options = {}
    if kind == "clusters":
        given["shop"] = np.array(
            [f"{side}{shop}" for side, shop in zip(given["side"], rng.integers(0, 60, 1400), strict=True)]
        )
        options["cluster"] = "shop"
    ours = mmd_test(pd.DataFrame(given), by="side", **options).smallest_shift
    all_rows(monkeypatch)
    theirs = mmd_test(pd.DataFrame(given), by="side", **options).smallest_shift
    assert ours.column == theirs.column
    assert_close(ours.standard_deviations, theirs.standard_deviations, share=1e-6)
