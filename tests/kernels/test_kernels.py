"""What every kernel must do, in every layout of pairs and on a GPU: held against a double loop over rows."""

import json
import math
import os
import pickle
import subprocess
import sys

import naive
import numpy as np
import pytest
from catalogue_kernels import CATEGORIES, GROUPED, NUMERIC, UNBOUND, kernel_of, mixed_points, naive_of
from tolerances import SAME_MACHINE, assert_close

import kerntest
from kerntest import parse_kernel
from kerntest.errors import UsageError
from kerntest.kernels import ALIASES, NAMES, exponential
from kerntest.kernels.base import Columns, DensePairs, Points
from kerntest.kernels.text import KERNELS, bind
from kerntest.matrices.passes import LagPairs

MORE = (
    "student-t(1.5)", "rational-quadratic(1.5)", "matern(1.5, 0.5)", "matern(1.5)", "matern(1.5, 7)", "periodic",
    "polynomial(2, 0.5, 0)", "exponential", "2.5", "2*3", "2 + 3", "1 + linear + 0.5*gaussian(1.5)", "3*gaussian(1.5)*linear",
    "(1 + linear)*gaussian(1.5)", "(gaussian(1.5) + 1)^70", "normalise(linear)", "gaussian(1.5)*delta",
)  # fmt: skip
CASES = UNBOUND | {text: naive_of(text) for text in MORE} | GROUPED
CASES["*: additive(0.5, 1, 2)"] = lambda x, y: naive.additive(x, y, (0.5, 1.0, 2.0))
S = ((2.0, 0.9, 0.0), (0.9, 1.0, -0.3), (0.0, -0.3, 0.5))


MEANS = (0.3, -1.0, 0.5)


def moments(columns):
    seen = [0, 1, 2] if columns is None else list(columns.numeric)
    return np.vstack([np.array(MEANS)[seen], np.array(S)[np.ix_(seen, seen)]])


def product(x, y, share=0.01, seen=slice(0, 3)):
    x, y = ([value - mean for value, mean in zip(row, MEANS, strict=False)][seen] for row in (x, y))
    return naive.mahalanobis(x, y, share, [line[seen] for line in S[seen]])


def distance(x, y, share):
    """The Mahalanobis distance: that of the linear kernel from itself."""
    return math.sqrt(max(product(x, x, share) - 2 * product(x, y, share) + product(y, y, share), 0.0))


CASES |= {
    "mahalanobis": product,
    "mahalanobis(0) + 0.5*gaussian(1.5)": lambda x, y: product(x, y, 0) + 0.5 * naive.gaussian(x[:3], y[:3], 1.5),
    "mahalanobis(gaussian(1.5), 0.1)": lambda x, y: math.exp(-(distance(x, y, 0.1) ** 2) / 4.5),
    "mahalanobis(0.3*laplacian2(2) + polynomial(2))^2": lambda x, y: (
        (0.3 * math.exp(-distance(x, y, 0.01) / 2) + (product(x, y) + 1) ** 2) ** 2
    ),
    "weight, depth: mahalanobis(0.5)*laplacian(2); price: linear": lambda x, y: (
        x[0] * y[0] * product(x, y, 0.5, slice(1, 3)) * naive.laplacian(x[1:3], y[1:3], 2.0)
    ),
}


def case(text):
    """Return the kernel of a text; one of columns for the table of three numbers and two codes."""
    kernel = kernel_of(text)
    unbound = ":" in text and text not in GROUPED
    return (bind(kernel, NUMERIC, CATEGORIES).kernel if unbound else kernel).whitened(moments)


def rows_of(points):
    return [a + b for a, b in zip(points.numeric.tolist(), points.codes.tolist(), strict=True)]


class Frozen(DensePairs):
    """Pairs whose shared quantities cannot be written into."""

    def _keep(self, name, compute):
        values = super()._keep(name, compute)
        values.flags.writeable = False
        return values


X, Y = mixed_points(12, 1), mixed_points(9, 2)


@pytest.fixture(params=CASES)
def text(request):
    return request.param


@pytest.fixture
def kernel(text):
    return case(text)


def test_every_kernel_of_the_catalogue_is_here():
    named = {text.partition("(")[0].removeprefix("*: ") for text in CASES}
    assert named >= set(naive.naive_kernels)


def test_values_are_those_of_a_double_loop(text, kernel):
    expected = naive.gram(CASES[text], rows_of(X), rows_of(Y))
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(Y, X), np.transpose(expected), rtol=1e-9, atol=1e-12)
    # The square root of a rounded zero distance is of the order 1e-8.
    diagonal = [CASES[text](row, row) for row in rows_of(X)]
    np.testing.assert_allclose(kernel.diagonal(X), diagonal, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(X)), diagonal, rtol=1e-6, atol=1e-12)


def test_a_gpu_computes_what_numpy_computes(kernel, monkeypatch):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    monkeypatch.setenv("KERNTEST_DEVICE", os.environ.get("KERNTEST_DEVICE", "cpu"))
    points = mixed_points(61, 3)
    with kerntest.compute_on("gpu", threads=1) as engine:
        sent = points.sent(engine)
        for lay_out in (
            lambda some: DensePairs(some.take(slice(0, 7)), some.take(slice(3, 61))),
            lambda some: LagPairs(some.take(slice(0, 37)), some.take(slice(5, 52)), 11),
        ):
            there = kernel.evaluate(lay_out(sent))
            assert type(there) is not np.ndarray or "delta" not in str(kernel)
            assert_close(np.asarray(there), kernel.evaluate(lay_out(points)), share=1e-12)


def test_positive_definite_where_it_claims(kernel):
    K = kernel(X)
    assert not kernel.positive_definite or np.linalg.eigvalsh(K)[0] >= -1e-7 * np.trace(np.abs(K))


def test_its_text_reads_back(kernel):
    again = parse_kernel(str(kernel))
    if ": " in str(kernel):
        again = bind(again, NUMERIC, CATEGORIES).kernel
    again = again.whitened(moments)
    assert (again, hash(again), str(again)) == (kernel, hash(kernel), str(kernel))
    assert not kernel.free
    assert kernel.resolve(None) == kernel


def test_new_array_and_shared_quantities_untouched(kernel):
    pairs, numeric = Frozen(X, Y), X.numeric.copy()
    first = kernel.evaluate(pairs)
    kept = first.copy()
    first[:] = -7.0
    second = kernel.evaluate(pairs)
    np.testing.assert_allclose(second, kept, rtol=1e-12, atol=1e-12)
    assert (second.shape, second.dtype) == (pairs.shape, np.float64)
    np.testing.assert_array_equal(X.numeric, numeric)


def test_open_bandwidths_are_asked_for_with_their_metric_and_columns():
    asked = []

    def rule(metric, columns):
        asked.append((metric, columns))
        return float(len(asked))

    text = "gaussian + 0.5*laplacian*hamming + normalise(student-t(df=3))^2 + periodic + gaussian(7)"
    assert str(parse_kernel(text).resolve(rule)) == (
        "gaussian(1) + 0.5*laplacian(2)*hamming(3) + normalise(student-t(4, df=3))^2 + periodic + gaussian(7)"
    )
    assert asked == [(metric, None) for metric in ("euclidean", "manhattan", "mismatches", "euclidean")]
    asked.clear()
    kernel = bind(parse_kernel("weight, shop: laplacian + hamming; *: gaussian"), NUMERIC, CATEGORIES).kernel
    assert kernel.free
    assert str(kernel.resolve(rule)) == (
        "weight, shop: laplacian(1) + hamming(2); price, depth: gaussian(3); city: hamming(4)"
    )
    assert asked == [
        ("manhattan", Columns((1,), (1,))),
        ("mismatches", Columns((), (1,))),
        ("euclidean", Columns((0, 2), ())),
        ("mismatches", Columns((), (0,))),
    ]


def test_a_kernel_is_bound_once():
    bound = bind(parse_kernel("price: linear; *: delta"), NUMERIC, CATEGORIES).kernel
    with pytest.raises(UsageError, match="is bound to columns already"):
        bind(bound, NUMERIC, CATEGORIES)
    with pytest.raises(UsageError, match="has no column to see"):
        bind(parse_kernel("gaussian"), [], [])


@pytest.mark.parametrize("lay_out", [lambda x: DensePairs(x, x), lambda x: LagPairs(x.take(slice(0, 9)), x, 4)])
@pytest.mark.parametrize("text", ["gaussian", "laplacian", "laplacian2", "hamming", "student-t", "*: gaussian"])
def test_half_the_bandwidth_is_a_power_of_the_whole(text, lay_out):
    alone, together = lay_out(X), lay_out(X)
    together.halve_bandwidths()
    kernel = bind(parse_kernel(text), NUMERIC, CATEGORIES).kernel
    for exponent in (2, 1, 0, -2, -3, -5):
        at = kernel.resolve(lambda *_, exponent=exponent: 2.0**exponent)
        # A squaring doubles what rounding did to the value before it: 4^5 times in five halvings of a Gaussian.
        assert_close(at.evaluate(together), at.evaluate(alone), scale=1.0, share=SAME_MACHINE)
    # Bandwidths that are no halves of the last one.
    for bandwidth in (2.0, 4.0, 3.0):
        other = kernel.resolve(lambda *_, bandwidth=bandwidth: bandwidth)
        assert_close(other.evaluate(together), other.evaluate(alone))


# Values kept of wider bandwidths


def test_powers_of_tiny_values_stay_normal_numbers():
    far = Points.of(np.linspace(0.0, 60.0, 600))
    pairs = DensePairs(far, far)
    pairs.halve_bandwidths()
    for exponent in range(2, -8, -1):
        values = parse_kernel(f"gaussian({2.0**exponent})").evaluate(pairs)
        assert ((values == 0.0) | (values >= np.finfo(float).tiny)).all()


# What is known of some


NAMED = ["gaussian", "laplacian", "laplacian2", "student-t", "rational-quadratic", "matern", "periodic"]
STATIONARY = [text for text in CASES if text.partition("(")[0] in NAMED and not set(text) & set("*+")]
EXTREME = [
    f"{text}({size}{end}"
    for size in (1e-75, 1e75)
    for text, end in (("gaussian", ")"), ("student-t", ", 1e75)"), ("student-t", ", 1e-75)"), ("matern", ", 2.5)"))
]


@pytest.mark.parametrize("text", STATIONARY + EXTREME)
def test_stationary_kernels_stay_between_0_and_1_at_any_distance(text):
    K = parse_kernel(text)(np.array([0.0, 1e-150, 1e-10, 1.0, 1e3, 1e100, 1e150, -1e153]))
    assert np.isfinite(K).all()
    assert K.min() >= 0
    assert K.max() <= 1 + 1e-12
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)
    if not text.startswith("periodic") and text not in EXTREME:
        assert K[0, -1] <= (1e-100 if "^" not in text else 1e-50)


@pytest.mark.parametrize("nu", [1.0, 3.0, 20.0, 60.5, 100.0])
def test_matern_falls_smoothly_where_the_bessel_function_overflows(nu):
    # k(z) = 1 - z^2/(4 (nu - 1)) + ... for small z, whichever branch computes it.
    z = np.geomspace(1e-160, 0.3, 400)
    K = parse_kernel(f"matern({float(np.sqrt(2 * nu))!r}, {nu})")(np.array([0.0]), z)[0]
    assert np.isfinite(K).all()
    assert (np.diff(K) <= 1e-12).all()
    if nu > 2:
        # The next term of the series, z^2 / (8 (nu - 2)) of this one, is up to 1.2 % at z = 0.3.
        np.testing.assert_allclose(1 - K[z > 0.05], z[z > 0.05] ** 2 / (4 * (nu - 1)), rtol=0.0125, atol=0)


# What is known of some


def test_periodic_keeps_its_digits_at_any_number_of_whole_periods():
    rows, kernel = np.arange(20.0) / 8, parse_kernel("periodic(2)")
    np.testing.assert_allclose(kernel(rows + 2.0**41, rows), kernel(rows), rtol=1e-12, atol=0)


def test_a_row_of_size_zero_is_normalised_to_zero():
    rows, kernel = np.array([[0.0, 0.0], [1.0, 2.0]]), parse_kernel("normalise(linear)")
    np.testing.assert_allclose(kernel(rows), [[0, 0], [0, 1]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(Points.of(rows)), [0, 1], rtol=0, atol=1e-12)


# Distances


@pytest.mark.parametrize(
    "kernel", ["laplacian2(0.0001)", "gaussian(1e-7)", "student-t(1e-7)", "rational-quadratic(1e-7)", "matern(1e-7)"]
)
def test_equal_rows_are_not_told_apart_by_rounding(kernel):
    rows = np.random.default_rng(0).normal(size=(300, 7)) + 30.0
    twice = Points.of(np.concatenate([rows, rows]))
    values = parse_kernel(kernel)(twice)
    np.testing.assert_array_equal(np.diag(values[:300, 300:]), 1.0)


def test_distances_of_a_slice_are_computed_as_those_of_the_whole():
    """One row far off makes expansion too coarse for the crowd, also where that row is not in the slice."""
    numeric = np.random.default_rng(0).normal(size=(200, 2))
    numeric[-1] = 1e9
    points, kernel = Points.of(numeric), parse_kernel("gaussian(1)")
    crowd = points.take(slice(0, 100))
    again = pickle.loads(pickle.dumps(crowd))
    assert not points.expandable
    assert not again.expandable
    assert Points.of(numeric[:100]).expandable
    assert_close(kernel(again), kernel.evaluate(DensePairs(crowd, crowd)), share=SAME_MACHINE)


def test_points_travel_without_what_is_derived_from_them():
    points = Points.of(np.random.default_rng(0).normal(size=(500, 4)))
    bare = len(pickle.dumps(points))
    points.derive(lambda numeric: 2 * numeric)
    assert points.expandable
    assert len(pickle.dumps(points)) == bare
    assert len(pickle.dumps(points.take(slice(0, 50)))) < bare / 5


# The catalogue


def test_names_are_those_of_the_catalogue_and_need_no_numpy():
    assert tuple(KERNELS) == NAMES
    assert all(kernel.name == name for name, kernel in KERNELS.items())
    assert set(ALIASES.values()) <= {*KERNELS, "normalise"}
    code = "import sys; import kerntest.kernels; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_catalogue_says_how_each_is_written(capsys):
    from kerntest.cli.main import run  # noqa: PLC0415 - for this test only

    assert run(["kernels", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["kernels"]}
    assert set(entries) == set(naive.naive_kernels)
    assert (entries["student-t"]["usage"], entries["delta"]["usage"]) == ("student-t(bandwidth, df=1)", "delta")
    assert entries["periodic"]["usage"] == "periodic(period=1, bandwidth=1)"
    assert entries["gaussian"]["aliases"] == ["rbf"]
    assert [parse_kernel(text).gamma for text in ("gaussian(2)", "gaussian")] == [pytest.approx(1 / 8, rel=1e-15), None]
    for name, entry in entries.items():
        assert entry["formula"]
        assert entry["remark"]
        assert str(parse_kernel(name)).removesuffix("(0.01)") == name


def test_exponentials_by_a_table_are_exponentials(monkeypatch):
    """For blocks of any shape and layout, whatever the processor is."""
    monkeypatch.setattr(exponential, "_by_table", lambda: True)
    rng = np.random.default_rng(0)
    distances = 39.9 * rng.random((90, 2000))
    distances[0, :4] = 0.0, 1e-9, 2.0**-15, 20.0
    wanted = np.exp(-2.0 * (distances / 2.0))
    errors = np.abs(exponential.exponential(distances / 2.0, -2.0) / wanted - 1.0)
    # That of the table, and of rounding the exponents.
    assert (errors <= 1.2e-15 + 4e-16 * (1.0 + distances)).all()
    assert exponential.exponential(distances, -1.0)[0, 0] == 1.0
    wide = np.full((90, 3000), 7.0)
    found = exponential.exponential(-distances, out=wide[:, 500:2500])
    assert np.shares_memory(found, wide)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert (np.delete(wide, np.s_[500:2500], axis=1) == 7.0).all()
    # Squared distances may round to less than zero, and be as far as numbers go: of those nothing is lost either.
    distances[1, 1], distances[40:, 5] = -1e-13, 700.0
    distances[80, 6:8] = np.inf, np.nan
    np.testing.assert_allclose(exponential.exponential(distances, -1.0), np.exp(-distances), rtol=1e-14)
    # Inner products have both signs.
    inner = 9.0 * rng.standard_normal((90, 2000))
    for factor in (0.5, -0.5, 1e-6):
        np.testing.assert_allclose(exponential.exponential(inner, factor), np.exp(factor * inner), rtol=1e-14)
