"""tr A^3 of one column, through a factor of low rank, against whole matrices that are centred in extended precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import STATISTIC, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.inference.nulls import moments
from kerntest.inference.nulls.moments import CentredKernel
from kerntest.kernels.base import Points

ENGINE = Engine(1)
HOLLOW = pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])


def codes(values):
    return Points(np.empty((len(values), 0)), np.asarray(values, dtype=np.int64)[:, None])


def column(kind, n):
    rng = np.random.default_rng((0, n))
    values = {
        "normal": rng.normal(size=n),
        "ties": rng.normal(size=n).round(),
        "heavy tails": rng.standard_t(1.5, size=n),
        "skewed": rng.lognormal(size=n),
    }
    return Points.of(values[kind])


def centred(K, *, hollow):
    """Return the centring of a matrix, which loses the most digits, in extended precision."""
    A = np.array(K, dtype=np.longdouble)
    n = len(A)
    inner, outer = (n - 2, (n - 1) * (n - 2)) if hollow else (n, n**2)
    if hollow:
        np.fill_diagonal(A, 0)
    rows = A.sum(axis=1)
    A += rows.sum() / outer - (rows[:, None] + rows) / inner
    if hollow:
        np.fill_diagonal(A, 0)
    return A.astype(np.float64)


def found(text, points, *, hollow):
    return CentredKernel(parse_kernel(text), points, ENGINE, hollow=hollow).invariants()


def by_factor(text, points, *, hollow):
    """Return tr A^3 by the factor; None where it does not serve, and random vectors would estimate it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "EXACT_TRACE_ROWS", 0)
        known, exact = found(text, points, hollow=hollow)
    return known.trace_cube if exact else None


def assert_cube(value, K, *, hollow, rtol=STATISTIC, zero=0.0):
    """Compare tr A^3; `zero` is the largest value that counts as none."""
    A = centred(K, hollow=hollow)
    # |tr A^3| <= |A|^3: where eigenvalues of both signs cancel, what is left has so many digits.
    size = float(np.sqrt((A**2).sum())) ** 3
    np.testing.assert_allclose(value, (A @ A * A).sum(), rtol=rtol, atol=1e-3 * rtol * size + zero)


FACTORED = (
    "gaussian(1)",
    "gaussian(0.05)",
    "laplacian(1)",
    "matern(1, 1.5)",
    "student-t(1, 3)",
    "rational-quadratic(1)",
    "periodic(2, 0.8)",
    "delta",
    "linear",
    "polynomial(3)",
    "gaussian(1) + 0.5*linear",
    "gaussian(1)*laplacian(2)",
    "normalise(polynomial(2))",
)
CASES = [(text, kind) for text in FACTORED for kind in ("ties", "heavy tails", "skewed")]


@HOLLOW
@pytest.mark.parametrize(("text", "kind"), [*CASES, ("delta", "categories"), ("hamming(1)", "categories")])
def test_the_factor_gives_the_trace_of_the_whole_matrix(text, kind, hollow):
    points = codes(np.random.default_rng(3).integers(0, 3, 70)) if kind == "categories" else column(kind, 70)
    value, K = by_factor(text, points, hollow=hollow), parse_kernel(text)(points)
    if text == "delta" and hollow and np.trace(K) == K.sum():
        # Where all rows differ, the U-centring is 0, and a factor of it has no digit.
        assert value is None
        assert_close(found(text, points, hollow=hollow)[0].trace_cube, 0.0, scale=1.0)
        return
    assert value is not None
    assert_cube(value, K, hollow=hollow)
    # No random vector takes part, nor does the number of rows.
    assert_close(found(text, points, hollow=hollow)[0].trace_cube, value)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(4, 40),
    text=st.sampled_from(["gaussian(1)", "laplacian(0.5)", "delta", "linear", "polynomial(2)", "matern(1, 1.5)"]),
    decimals=st.integers(0, 12),
    hollow=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_number_of_rows_and_ties(*, n, text, decimals, hollow, seed):
    points = Points.of(np.random.default_rng(seed).normal(size=n).round(decimals))
    (known, exact), K = found(text, points, hollow=hollow), parse_kernel(text)(points)
    assert exact
    # A column of one value, or with one row that differs, has A = 0.
    assert_cube(known.trace_cube, K, hollow=hollow, zero=1e-12 * float(np.abs(K).max()) ** 3 * n)


@HOLLOW
@pytest.mark.parametrize(("kind", "most"), [("heavy tails", 99), ("normal", 5)])
def test_a_rank_beyond_the_limit_takes_the_whole_matrix(kind, most, hollow, monkeypatch):
    """A Laplacian has as many eigenvalues as there are different rows."""
    points = column(kind, 100)
    factored = by_factor("laplacian(1)", points, hollow=hollow)
    monkeypatch.setattr(moments, "LARGEST_RANK", most)
    assert by_factor("laplacian(1)", points, hollow=hollow) is None
    assert_close(factored, found("laplacian(1)", points, hollow=hollow)[0].trace_cube)


@HOLLOW
@pytest.mark.parametrize(
    ("text", "points"),
    [
        *((text, column("normal", 60)) for text in ("gaussian(1000)", "laplacian(1000)", "rational-quadratic(30)")),
        *((text, Points.of(column("normal", 60).numeric + 1e3)) for text in ("linear", "polynomial(2)")),
        ("exponential(0.5)", Points.of(np.append(column("normal", 20).numeric, 7.0))),
    ],
    ids=["wide", "wide too", "nearly constant", "far", "far squares", "one far row"],
)
def test_what_is_small_beside_the_entries_keeps_its_digits(text, points, hollow):
    """Entries near 1 that differ little, a column far from 0, an entry of a far row that U-centring takes out."""
    value = found(text, points, hollow=hollow)[0].trace_cube
    assert_cube(value, parse_kernel(text)(points), hollow=hollow, rtol=1e-5)


def test_many_columns_to_cube_are_swept_instead():
    factor = moments.low_rank(parse_kernel("gaussian(0.45)"), column("normal", 1500))
    assert factor.rank > 1
    assert moments.low_rank_invariants(factor, hollow=True) is None
