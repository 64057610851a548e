"""tr A^3 of one column, through a factor of low rank, against whole matrices that are centred in extended precision."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, STATISTIC, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.inference.nulls import invariants
from kerntest.inference.nulls.invariants import kernel_invariants, permutation_moments
from kerntest.kernels.base import Points

ENGINE = Engine(1)
CENTRINGS = {True: "unbiased", False: "biased"}


def codes(values):
    return Points(np.empty((len(values), 0)), np.asarray(values, dtype=np.int64)[:, None])


def column(kind, n, seed=0):
    rng = np.random.default_rng((seed, n))
    values = {
        "normal": rng.normal(size=n),
        "ties": rng.normal(size=n).round(),
        "two values": np.arange(n) % 3 == 0,
        "heavy tails": rng.standard_t(1.5, size=n),
        "skewed": rng.lognormal(size=n),
        "sorted": np.sort(rng.normal(size=n)),
    }
    return Points.of(values[kind].astype(float))


def centred(K, *, hollow):
    """Return the centring of a matrix, which loses the most digits, in extended precision."""
    A = np.array(K, dtype=np.longdouble)
    n = len(A)
    if hollow:
        np.fill_diagonal(A, 0)
        rows, inner, outer = A.sum(axis=1), n - 2, (n - 1) * (n - 2)
    else:
        rows, inner, outer = A.sum(axis=1), n, n**2
    A += rows.sum() / outer - (rows[:, None] + rows) / inner
    if hollow:
        np.fill_diagonal(A, 0)
    return A.astype(np.float64)


def brute(A):
    """Return the invariants of a symmetric matrix by their definitions."""
    d, square = np.diag(A), A @ A
    return {
        "trace": d.sum(),
        "trace_square": (A**2).sum(),
        "diagonal_square": (d**2).sum(),
        "diagonal_cube": (d**3).sum(),
        "diagonal_with_square": d @ np.diag(square),
        "diagonal_form": d @ A @ d,
        "trace_cube": (square * A).sum(),
        "entry_cubes": (A**3).sum(),
    }


def trace_cube(text, points, *, hollow):
    return kernel_invariants(parse_kernel(text), points, ENGINE, hollow=hollow, seed=0)[0].trace_cube


def by_factor(text, points, *, hollow):
    """Return tr A^3 by the factor; None where it does not serve, and random vectors would estimate it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(invariants, "EXACT_TRACE_ROWS", 0)
        found, exact = kernel_invariants(parse_kernel(text), points, ENGINE, hollow=hollow, seed=0)
    return found.trace_cube if exact else None


def assert_cube(found, text, points, *, hollow, rtol=STATISTIC, zero=0.0):
    """Compare tr A^3; `zero` is the largest value that counts as none."""
    A = centred(parse_kernel(text)(points), hollow=hollow)
    # |tr A^3| <= |A|^3: where eigenvalues of both signs cancel, what is left has so many digits.
    size = float(np.sqrt((A**2).sum())) ** 3
    np.testing.assert_allclose(found, brute(A)["trace_cube"], rtol=rtol, atol=1e-3 * rtol * size + zero)


FACTORED = (
    "gaussian(1)",
    "gaussian(0.05)",
    "laplacian(1)",
    "matern(1, 1.5)",
    "matern(1, 2.5)",
    "student-t(1, 3)",
    "rational-quadratic(1)",
    "periodic(2, 0.8)",
    "delta",
    "linear",
    "polynomial(3)",
    "polynomial(2, 0.5, 0)",
    "gaussian(1) + 0.5*linear",
    "gaussian(1)*laplacian(2)",
    "normalise(polynomial(2))",
)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("kind", ["ties", "heavy tails", "sorted"])
@pytest.mark.parametrize("text", FACTORED)
def test_the_factor_gives_the_trace_of_the_whole_matrix(text, kind, hollow):
    points = column(kind, 70)
    found = by_factor(text, points, hollow=hollow)
    if text == "delta" and hollow and len(np.unique(points.numeric)) == len(points):
        # Where all rows differ, the U-centring is 0, and a factor of it has no digit.
        assert found is None
        assert_close(trace_cube(text, points, hollow=hollow), 0.0, scale=1.0)
        return
    assert found is not None
    assert_cube(found, text, points, hollow=hollow)
    assert_close(trace_cube(text, points, hollow=hollow), found)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["delta", "hamming(1)", "hamming(0.3)"])
@pytest.mark.parametrize("levels", [2, 3, 60])
def test_a_column_of_categories(levels, text, hollow):
    points = codes(np.random.default_rng(levels).integers(0, levels, 70))
    found = by_factor(text, points, hollow=hollow)
    assert found is not None
    assert_cube(found, text, points, hollow=hollow)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("laplacian2(0.7)", lambda d: np.exp(-d / 0.7)),
        ("matern(1, 0.5)", lambda d: np.exp(-d)),
        ("gaussian(1e-3)", lambda d: np.exp(-(d**2) / 2e-6)),
        ("gaussian(1e-6)", lambda d: np.exp(-(d**2) / 2e-12)),
        ("gaussian(1e-9)", lambda d: np.exp(-(d**2) / 2e-18)),
    ],
)
def test_a_kernel_that_makes_much_of_small_distances(text, function, hollow):
    """The distance of a row to itself is 0, whatever rounding makes of it."""
    points = column("normal", 70)
    x = points.numeric[:, 0]
    A = centred(function(np.abs(x[:, None] - x)), hollow=hollow)
    found = kernel_invariants(parse_kernel(text), points, ENGINE, hollow=hollow, seed=0)[0]
    for name in ("trace_square", "trace_cube", "entry_cubes"):
        assert_close(getattr(found, name), brute(A)[name])


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
    found, exact = kernel_invariants(parse_kernel(text), points, ENGINE, hollow=hollow, seed=0)
    assert exact
    # A column of one value, or with one row that differs, has A = 0.
    largest = float(np.abs(parse_kernel(text)(points)).max())
    assert_cube(found.trace_cube, text, points, hollow=hollow, zero=1e-12 * largest**3 * n)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["polynomial(3, 1, -1)", "polynomial(2, 1, -0.5)", "polynomial(3, 1, -20)"])
def test_a_kernel_that_is_not_positive_definite_has_no_factor(text, hollow):
    points = column("normal", 70)
    assert not parse_kernel(text).positive_definite
    assert by_factor(text, points, hollow=hollow) is None
    assert_cube(trace_cube(text, points, hollow=hollow), text, points, hollow=hollow)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("kind", ["heavy tails", "normal"])
def test_a_rank_beyond_the_limit_takes_the_whole_matrix(kind, hollow, monkeypatch):
    """A Laplacian has as many eigenvalues as there are different rows."""
    points = column(kind, 100)
    factored = by_factor("laplacian(1)", points, hollow=hollow)
    monkeypatch.setattr(invariants, "LARGEST_RANK", 99)
    assert by_factor("laplacian(1)", points, hollow=hollow) is None
    whole = trace_cube("laplacian(1)", points, hollow=hollow)
    assert_cube(whole, "laplacian(1)", points, hollow=hollow)
    assert_close(factored, whole)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
def test_a_smaller_limit_gives_the_same_trace(hollow, monkeypatch):
    points = column("heavy tails", 120)
    factored = trace_cube("gaussian(0.5)", points, hollow=hollow)
    monkeypatch.setattr(invariants, "LARGEST_RANK", 5)
    assert by_factor("gaussian(0.5)", points, hollow=hollow) is None
    assert_close(trace_cube("gaussian(0.5)", points, hollow=hollow), factored)


def test_several_columns_have_no_factor():
    rng = np.random.default_rng(0)
    for points in (
        Points.of(rng.normal(size=(30, 2))),
        Points(np.empty((30, 0)), rng.integers(0, 3, (30, 2))),
        Points(rng.normal(size=(30, 1)), rng.integers(0, 3, (30, 1))),
    ):
        text = "gaussian(1)" if points.numeric.shape[1] == 2 else "delta"
        assert by_factor(text, points, hollow=True) is None
        assert_cube(trace_cube(text, points, hollow=True), text, points, hollow=True)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["gaussian(1)", "delta", "linear", "polynomial(2)", "exponential(0.3)"])
def test_all_invariants_of_one_column(text, hollow):
    """Several strips and tiles; the diagonals of the last three are not constant."""
    points = column("ties" if text == "delta" else "skewed" if text == "gaussian(1)" else "normal", 300)
    found, exact = kernel_invariants(parse_kernel(text), points, ENGINE, hollow=hollow, seed=0)
    A = centred(parse_kernel(text)(points), hollow=hollow)
    assert exact
    size = float(np.abs(A).max()) ** 3 * len(A) ** 2
    for name, value in brute(A).items():
        assert_close(getattr(found, name), value, scale=size)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
def test_one_column_stays_exact_where_several_are_estimated(hollow, monkeypatch):
    monkeypatch.setattr(invariants, "EXACT_TRACE_ROWS", 50)
    one, two = column("skewed", 200), Points.of(np.random.default_rng(0).normal(size=(200, 2)))
    kernel = parse_kernel("gaussian(1)")
    found, exact = kernel_invariants(kernel, one, ENGINE, hollow=hollow, seed=0)
    assert exact
    assert_cube(found.trace_cube, "gaussian(1)", one, hollow=hollow)
    assert not kernel_invariants(kernel, two, ENGINE, hollow=hollow, seed=0)[1]
    # No random vector takes part.
    assert_close(kernel_invariants(kernel, one, ENGINE, hollow=hollow, seed=1)[0].trace_cube, found.trace_cube)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["gaussian(1)", "linear", "polynomial(2)"])
def test_the_skewness_is_that_of_all_permutations(text, hollow):
    x, y = column("skewed", 7), codes([0, 1, 0, 2, 1, 0, 0])
    kernels = parse_kernel(text), parse_kernel("delta")
    A, B = (
        naive.centred[CENTRINGS[hollow]](kernel(points).tolist())
        for kernel, points in zip(kernels, (x, y), strict=True)
    )
    values = np.array(naive.permuted_inner_products(A, B))
    a, b = (
        kernel_invariants(kernel, points, ENGINE, hollow=hollow, seed=0)[0]
        for kernel, points in zip(kernels, (x, y), strict=True)
    )
    found = permutation_moments(a, b, 7)
    assert_close(found.standard_deviation, values.std())
    skewness = np.mean((values - values.mean()) ** 3) / values.std() ** 3
    np.testing.assert_allclose(found.skewness, skewness, rtol=1e-7)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["gaussian(30)", "gaussian(1000)", "laplacian(1000)", "rational-quadratic(1000)"])
def test_a_wide_kernel_keeps_its_digits(text, hollow):
    """Entries near 1 that differ little: what is centred is small beside them, the more so its cube."""
    points = column("normal", 60)
    assert_cube(trace_cube(text, points, hollow=hollow), text, points, hollow=hollow, rtol=1e-5)


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize("text", ["linear", "polynomial(2)"])
def test_a_column_far_from_zero_keeps_its_digits(text, hollow):
    points = Points.of(column("normal", 60).numeric + 1e3)
    assert_cube(trace_cube(text, points, hollow=hollow), text, points, hollow=hollow, rtol=1e-5)


@pytest.mark.parametrize("text", ["exponential(0.5)", "polynomial(3)"])
def test_a_far_row_that_u_centring_takes_out_takes_no_digits_with_it(text):
    """Its own entry is far larger than all others, and U-centring has no diagonal."""
    points = Points.of(np.append(column("normal", 20).numeric, 7.0))
    assert_cube(trace_cube(text, points, hollow=True), text, points, hollow=True, rtol=1e-5)


def test_the_number_of_threads_changes_nothing():
    points, kernel = column("skewed", 700), parse_kernel("gaussian(0.5)")
    found, again = (kernel_invariants(kernel, points, Engine(count), hollow=True, seed=0)[0] for count in (1, 3))
    for name in type(found).__slots__:
        assert_close(getattr(again, name), getattr(found, name), share=SAME_MACHINE)
